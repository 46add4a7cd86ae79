"""Send an operator's request to rebuild one end's sub-interface to the end's router, once."""

from uuid import UUID

from portal.core import clock
from portal.vll.models import VllEnd
from portal.vll.router_operations.rebuild import end_rebuild_failed
from provisioning.agent_client import Refused, Unreachable
from provisioning.converge_job import Clock, agent_of


def end_rebuild(vll: UUID, side: str, *, now: Clock = clock.now) -> None:
    """Send the request; an event of the agent confirms it, an event of the portal says why it failed.

    Nothing repeats it: the operator sees that it failed, and decides again.
    """
    end = VllEnd.objects.select_related("port__router").filter(vll=vll, side=side).first()
    if end is None:
        return
    router = end.port.router
    if router.held_since is not None:
        end_rebuild_failed(end=end, why="the router is held: nothing is sent to it", now=now())
        return
    with agent_of(router) as agent:
        answer = agent.rebuild(vll=vll, side=side)
    if isinstance(answer, Refused):
        end_rebuild_failed(end=end, why=str(answer.problem.get("detail", answer.type)), now=now())
    elif isinstance(answer, Unreachable):
        end_rebuild_failed(end=end, why=answer.error, now=now())
