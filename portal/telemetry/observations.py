"""Taking in what an agent observes: its router, its VLL ends, and the fact that it is there again."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

from portal.events.operations import send_task
from portal.inventory.models import ObservedRouter, Router
from portal.inventory.operations import observed_store
from portal.inventory.reports import ObservedReport
from portal.vll.models import RouterConvergence
from portal.vll.operations import ends_observed
from portal.vll.operations.answers import EndObservation
from portal.vll.operations.converging import CONVERGE_ROUTER

# Reports come every 10 s: one was missed.
_MISSED = timedelta(seconds=15)


@transaction.atomic
def observation_take(
    *, router: Router, report: ObservedReport, ends: Sequence[EndObservation], now: datetime
) -> bool:
    """Store a report; False when a later one has been stored already."""
    is_back = _is_back(router, report, now)
    if not observed_store(router=router, report=report, now=now):
        return False
    ends_observed(router=router, ends=ends, now=now)
    if is_back:
        _end_backoff(router, now)
    return True


def _is_back(router: Router, report: ObservedReport, now: datetime) -> bool:
    """Whether this is the first sign of life after a while, of the agent or of its VPP.

    One that reports all the time, and yet does not answer us, keeps its pauses: otherwise a few such
    routers would keep every worker busy.
    """
    last = ObservedRouter.objects.filter(router=router).first()
    return (
        last is None
        or last.boot_id != report.boot_id
        or now - last.reported_at > _MISSED
        or (report.vpp_connected and not last.vpp_connected)
    )


def _end_backoff(router: Router, now: datetime) -> None:
    """An agent that is back can be asked: no need to wait for the end of a long pause."""
    waiting = RouterConvergence.objects.filter(router=router, retry_at__gt=now)
    if waiting.update(retry_at=None):
        send_task(CONVERGE_ROUTER, router.pk, now=now)
