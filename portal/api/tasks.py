"""Celery tasks of the REST API."""

from celery import shared_task

from portal.api.rest.idempotency import answers_sweep
from portal.celery_tasks import SWEEP_ANSWERS
from portal.core import clock


@shared_task(name=SWEEP_ANSWERS, time_limit=60)
def sweep_answers() -> None:
    answers_sweep(now=clock.now())
