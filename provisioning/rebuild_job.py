"""Send an operator's request to rebuild one end's sub-interface to the end's router, once."""

from uuid import UUID

from portal.core import clock
from portal.vll.models import VllEnd
from portal.vll.router_operations.rebuild import end_rebuild_failed
from provisioning.agent_client import Refused, Unreachable
from provisioning.converge_job import Clock, agent_of


def end_rebuild(vll: UUID, side: str, *, now: Clock = clock.now) -> None:
    """Send the request. An event of the agent confirms it; an event of the portal reports why it failed.

    The request is not retried: the operator sees the failure, and decides again.
    """
    end = VllEnd.objects.select_related("port__router").filter(vll=vll, side=side).first()
    if end is None:
        return
    router = end.port.router
    if router.locked_since is not None:
        end_rebuild_failed(end=end, why="the router is locked: nothing is sent to it", now=now())
        return
    with agent_of(router) as agent:
        response = agent.rebuild(vll=vll, side=side)
    if isinstance(response, Refused):
        end_rebuild_failed(end=end, why=str(response.problem.get("detail", response.type)), now=now())
    elif isinstance(response, Unreachable):
        end_rebuild_failed(end=end, why=response.error, now=now())
