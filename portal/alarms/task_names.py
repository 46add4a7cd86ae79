"""Names of the Celery tasks of alarms."""

WATCH = "alarms.watch"
FORGET = "alarms.forget"
