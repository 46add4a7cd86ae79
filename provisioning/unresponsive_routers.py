"""Routers that probably do not answer: they are asked by workers of their own, so that others need not wait.

A call to a router that drops packets holds a worker for seconds. Fifty of them, each tried as often as its
backoff allows, would hold all workers all the time.
"""

from datetime import datetime

from django.db import transaction
from django.db.models import Q

from portal.events.outbox import send_task
from portal.inventory.models import Router
from portal.vll.operations.oper_status import FRESH
from portal.vll.task_names import CONVERGE_DOUBTFUL

# One failure may be an accident.
_FAILURES = 2


def is_unresponsive(router_id: int, *, now: datetime) -> bool:
    """Whether the agent has not reported for a while, or reports and yet failed to answer us time and again.

    A pause that was ended early (the agent is back, or the NOC says so) is a fresh start.
    """
    silent = Q(observed__isnull=True) | Q(observed__reported_at__lt=now - FRESH)
    failing = Q(convergence__failures__gte=_FAILURES, convergence__retry_at__isnull=False)
    return Router.objects.filter(silent | failing, pk=router_id).exists()


@transaction.atomic
def hand_over(router_id: int, *, now: datetime) -> None:
    """Have the router converged by the workers for doubtful ones."""
    send_task(CONVERGE_DOUBTFUL, router_id, now=now)
