"""Celery tasks of telemetry."""

from collections.abc import Callable
from datetime import datetime, timedelta

from celery import shared_task
from django.conf import settings

from portal import celery_tasks
from portal.core import clock
from portal.core.background_work import each_row
from portal.telemetry.line_status_in_silence import silence_judge
from portal.telemetry.monthly_figures import months_freeze
from portal.telemetry.partitioned_tables import partitions_keep
from portal.telemetry.rollups import roll_up as samples_roll_up
from portal.telemetry.router_losses import losses_roll_up
from portal.telemetry.router_silences import silences_begin, silences_due, silences_forget
from portal.vll.operations.order_progress import attempts_forget

# The intervals of Celery's beat. A message that waits for longer expires, because the next one follows.
ROLL_UP_EVERY_S = 60
WATCH_SILENCES_EVERY_S = 10
# The most buckets that one run rolls up. They take about ten seconds.
ROLLED_UP_TOGETHER = 40_000


@shared_task(name=celery_tasks.KEEP_PARTITIONS)
def keep_partitions() -> None:
    now = clock.now()
    parts: tuple[Callable[[], object], ...] = (
        lambda: partitions_keep(now=now),
        lambda: silences_forget(before=now - timedelta(days=settings.LONGLINE_ROUTER_EVENT_DAYS)),
        lambda: attempts_forget(before=now - timedelta(days=settings.LONGLINE_ATTEMPT_DAYS)),
    )
    each_row(parts, lambda part: part(), what="a part of keeping partitions")


@shared_task(name=celery_tasks.FREEZE_PERCENTILES, time_limit=1800)
def freeze_percentiles() -> None:
    months_freeze(now=clock.now())


@shared_task(name="telemetry.count_accepted")
def count_accepted() -> None:
    """Do nothing. The previous release queues this task for quarantined samples (ADR 82)."""


@shared_task(name=celery_tasks.ROLL_UP)
def roll_up() -> None:
    """Roll up one portion, and send a task for the next, so that other tasks can run between them."""
    counted = each_row(
        (samples_roll_up, losses_roll_up),
        lambda part: part(now=clock.now(), most=ROLLED_UP_TOGETHER),
        what="a part of rolling up",
    )
    if max(counted) >= ROLLED_UP_TOGETHER:
        roll_up.apply_async(expires=ROLL_UP_EVERY_S)


@shared_task(name=celery_tasks.WATCH_SILENCES)
def watch_silences() -> None:
    """Begin silences, and send a task for each due one, so that none delays another."""
    each_row(
        (silences_begin, _judgements_send), lambda part: part(now=clock.now()), what="a part of watching"
    )


def _judgements_send(*, now: datetime) -> None:
    for silence_id in silences_due(now=now):
        judge_silence.apply_async((silence_id,), expires=WATCH_SILENCES_EVERY_S)


@shared_task(name=celery_tasks.JUDGE_SILENCE)
def judge_silence(silence_id: int) -> None:
    if silence_judge(silence_id=silence_id, now=clock.now()):
        judge_silence.apply_async((silence_id,))
