"""Celery tasks of telemetry."""

from datetime import timedelta

from celery import shared_task
from django.conf import settings

from portal.core import clock
from portal.telemetry import task_names
from portal.telemetry.month_close import months_freeze
from portal.telemetry.partitions import partitions_keep
from portal.telemetry.rollups import roll_up as samples_roll_up
from portal.telemetry.router_loss_rollups import losses_roll_up
from portal.telemetry.router_silences import silences_forget
from portal.telemetry.sample_quarantine_accept import accepted_count
from portal.telemetry.sample_quarantine_decisions import quarantines_expire
from portal.vll.operations import attempts_forget


@shared_task(name=task_names.KEEP_PARTITIONS)
def keep_partitions() -> None:
    quarantines_expire(now=clock.now())
    partitions_keep(now=clock.now())
    silences_forget(before=clock.now() - timedelta(days=settings.LONGLINE_ROUTER_EVENT_DAYS))
    attempts_forget(before=clock.now() - timedelta(days=settings.LONGLINE_ATTEMPT_DAYS))


@shared_task(name=task_names.FREEZE_PERCENTILES, time_limit=1800)
def freeze_percentiles() -> None:
    months_freeze(now=clock.now())


@shared_task(name=task_names.COUNT_ACCEPTED, time_limit=1800)
def count_accepted() -> None:
    accepted_count(now=clock.now())


@shared_task(name=task_names.ROLL_UP)
def roll_up() -> None:
    samples_roll_up(now=clock.now())
    losses_roll_up(now=clock.now())
