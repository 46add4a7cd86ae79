"""Names of the Celery tasks of notifications."""

FAN_OUT = "notifications.tell"
WEBHOOK_TURN = "notifications.webhook_deliver"
DOUBTFUL_WEBHOOK_TURN = "notifications.doubtful_webhook_turn"
SEND_MAIL = "notifications.send_mail"
MONTHLY_REPORTS = "notifications.monthly_reports"
FORGET = "notifications.forget"
