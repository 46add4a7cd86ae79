"""Taking in what an agent observes: its router, its VLL ends, and the fact that it is there again."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from portal.events.operations import send_task
from portal.inventory.models import Router
from portal.inventory.operations import observed_store
from portal.inventory.reports import ObservedReport
from portal.vll.models import RouterConvergence
from portal.vll.operations import ends_observed
from portal.vll.operations.answers import EndObservation
from portal.vll.operations.converging import CONVERGE_ROUTER


@transaction.atomic
def observation_take(
    *, router: Router, report: ObservedReport, ends: Sequence[EndObservation], now: datetime
) -> bool:
    """Store a report; False when a later one has been stored already."""
    if not observed_store(router=router, report=report, now=now):
        return False
    ends_observed(router=router, ends=ends, now=now)
    _end_backoff(router, now)
    return True


def _end_backoff(router: Router, now: datetime) -> None:
    """An agent that reports can be asked: no need to wait for the end of a long pause."""
    waiting = RouterConvergence.objects.filter(router=router, retry_at__gt=now)
    if waiting.update(retry_at=None):
        send_task(CONVERGE_ROUTER, router.pk, now=now)
