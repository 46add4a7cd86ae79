"""Celery tasks of the REST API."""

from celery import shared_task

from portal.api.task_names import SWEEP_ANSWERS
from portal.api.v1.idempotency import answers_sweep
from portal.core import clock


@shared_task(name=SWEEP_ANSWERS, time_limit=60)
def sweep_answers() -> None:
    answers_sweep(now=clock.now())
