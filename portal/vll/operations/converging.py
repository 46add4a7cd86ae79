"""Asking for a VLL's routers to be converged: an outbox row for each, in the caller's transaction."""

from datetime import datetime

from portal.events.operations import send_task
from portal.vll.models import Vll

CONVERGE_ROUTER = "provisioning.converge_router"


def converge_routers_of(vll: Vll, *, now: datetime) -> None:
    """Hurry both routers; a lost message is made good by the sweeper, which looks at the rows."""
    for router_id in sorted(set(vll.ends.values_list("port__router_id", flat=True))):
        send_task(CONVERGE_ROUTER, router_id, now=now)
