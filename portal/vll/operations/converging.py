"""Asking for a VLL's routers to be converged: an outbox row for each, in the caller's transaction."""

from collections.abc import Iterable
from datetime import datetime

from portal.events.operations import send_tasks
from portal.vll.models import Vll

CONVERGE_ROUTER = "provisioning.converge_router"


def converge_routers_of(vll: Vll, *, now: datetime) -> None:
    """Hurry both routers; a lost message is made good by the sweeper, which looks at the rows."""
    converge_routers(vll.ends.values_list("port__router_id", flat=True), now=now)


def converge_routers(router_ids: Iterable[int], *, now: datetime) -> None:
    """The same for a caller who knows which routers they are."""
    send_tasks(CONVERGE_ROUTER, [(router_id,) for router_id in sorted(set(router_ids))], now=now)
