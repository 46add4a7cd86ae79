"""Celery tasks of notifications. Their arguments are ids, and each task calls one function."""

from datetime import timedelta

from celery import shared_task
from django.conf import settings

from portal import celery_tasks
from portal.core import clock
from portal.core.background_work import each_row
from portal.notifications.event_fanout import events_fan_out
from portal.notifications.mail_delivery import mail_send, mails_call, mails_forget
from portal.notifications.mail_templates import monthly_reports_make
from portal.notifications.webhook_delivery import webhook_deliver, webhooks_call
from portal.notifications.webhook_operations import deliveries_forget


@shared_task(name=celery_tasks.FAN_OUT)
def fan_out() -> None:
    """Create deliveries and mails from events, and send a task for each webhook and mail that is due."""
    parts = (events_fan_out, webhooks_call, mails_call)
    each_row(parts, lambda part: part(now=clock.now()), what="a part of notifying")


@shared_task(name=celery_tasks.WEBHOOK_TURN)
def turn(webhook_id: int) -> None:
    webhook_deliver(webhook_id=webhook_id, clock=clock.now)


@shared_task(name=celery_tasks.DOUBTFUL_WEBHOOK_TURN)
def doubtful_deliver(webhook_id: int) -> None:
    webhook_deliver(webhook_id=webhook_id, clock=clock.now)


@shared_task(name=celery_tasks.SEND_MAIL)
def send_mail(mail_id: int) -> None:
    mail_send(mail_id=mail_id, now=clock.now())


@shared_task(name=celery_tasks.MONTHLY_REPORTS)
def monthly_reports() -> None:
    monthly_reports_make(now=clock.now())


@shared_task(name=celery_tasks.FORGET_NOTIFICATIONS)
def forget() -> None:
    before = clock.now() - timedelta(days=settings.LONGLINE_WEBHOOK_LOG_DAYS)
    each_row((deliveries_forget, mails_forget), lambda part: part(before=before), what="a part of forgetting")
