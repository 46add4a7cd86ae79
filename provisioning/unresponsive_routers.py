"""Routers that probably do not respond. Separate workers handle them, so that other routers need not wait.

A call to a router that drops packets occupies a worker for seconds. Fifty such routers would occupy all
workers permanently, because each is tried again after its pause.
"""

from datetime import datetime

from django.db import transaction
from django.db.models import Q

from portal.events.outbox import send_task
from portal.inventory.models import FRESH, Router
from portal.vll.task_names import CONVERGE_DOUBTFUL

# A single failure may be a coincidence.
_FAILURES = 2


def is_unresponsive(router_id: int, *, now: datetime) -> bool:
    """Return whether the agent has not reported for a while, or reports but has repeatedly failed to respond.

    Failures do not count if the pause after them ended early, because the NOC ended it or the agent is back.
    """
    silent = Q(observed__isnull=True) | Q(observed__reported_at__lt=now - FRESH)
    failing = Q(convergence__failures__gte=_FAILURES, convergence__retry_at__isnull=False)
    return Router.objects.filter(silent | failing, pk=router_id).exists()


@transaction.atomic
def hand_over(router_id: int, *, now: datetime) -> None:
    """Request that the workers for unresponsive routers converge the router."""
    send_task(CONVERGE_DOUBTFUL, router_id, now=now)
