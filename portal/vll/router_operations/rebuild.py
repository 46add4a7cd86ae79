"""Request that a router deletes and re-creates an end's sub-interface, because the router drops the end's
frames.

The agent does this automatically once, after VPP's tracer has shown such frames. Only an operator's request
repeats it.
"""

from datetime import datetime

from django.db import transaction

from portal.accounts.models import User
from portal.celery_tasks import REBUILD_END
from portal.events.outbox import announce, send_task
from portal.vll.models import VllEnd


@transaction.atomic
def end_rebuild_request(*, end: VllEnd, user: User, now: datetime) -> None:
    """Request the rebuild from the end's router, through a task. Read the end with
    ``select_related("port")``.
    """
    announce(
        "router.rebuild_requested",
        now=now,
        router_id=end.port.router_id,
        actor=user.username,
        data={"vll": str(end.vll_id), "end": end.side},
    )
    send_task(REBUILD_END, str(end.vll_id), end.side, now=now)


@transaction.atomic
def end_rebuild_failed(*, end: VllEnd, why: str, now: datetime) -> None:
    """Record that the agent did not accept the request."""
    announce(
        "router.rebuild_failed",
        now=now,
        router_id=end.port.router_id,
        data={"vll": str(end.vll_id), "end": end.side, "detail": why[:500]},
    )
