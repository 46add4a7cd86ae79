"""Celery tasks of alarms."""

from datetime import timedelta

from celery import shared_task
from django.conf import settings

from portal import celery_tasks
from portal.alarms.rounds import alarms_forget, alarms_watch
from portal.core import clock


@shared_task(name=celery_tasks.WATCH_ALARMS)
def watch() -> None:
    alarms_watch(now=clock.now())


@shared_task(name=celery_tasks.FORGET_ALARMS)
def forget() -> None:
    alarms_forget(before=clock.now() - timedelta(days=settings.LONGLINE_ALARM_DAYS))
