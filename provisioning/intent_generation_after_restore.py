"""After a restored backup: let the portal send intents to the agents again, when a user requests it."""

from datetime import datetime

from django.db import transaction

from portal.accounts import permissions
from portal.accounts.models import User
from portal.events.outbox import announce
from portal.inventory.models import Router
from portal.vll.models import RouterConvergence
from portal.vll.operations.convergence_requests import converge_routers_anew
from provisioning.agent_client import Unreachable
from provisioning.converge_job import agent_of


class CannotAsk(Exception):
    """The agent does not say what it holds."""


def generation_adopt_on_request(*, router_id: int, actor: str, now: datetime) -> int | None:
    """As ``generation_adopt``, for a request that waited: not for a user who may not request it any more."""
    user = User.objects.filter(username=actor).first()
    if user is None or not permissions.may_run_the_network(user):
        RouterConvergence.objects.filter(router=router_id).update(reconcile_requested_at=None)
        return None
    return generation_adopt(router_id=router_id, actor=actor, now=now)


def generation_adopt(*, router_id: int, actor: str, now: datetime) -> int | None:
    """Ask the agent what it holds and count on from there; None when there is no agent to ask.

    Raises CannotAsk, which the task's log keeps: the alarm stays until a reconciliation succeeds.
    """
    router = Router.objects.exclude(agent_url="").filter(pk=router_id).first()
    if router is None:
        return None
    with agent_of(router) as agent:
        held = agent.held()
    if isinstance(held, Unreachable):
        raise CannotAsk(f"{router.name} cannot be asked what it holds: {held.error}")
    return generation_count_from(router=router, held=held.generation, actor=actor, now=now)


@transaction.atomic
def generation_count_from(*, router: Router, held: int, actor: str, now: datetime) -> int:
    """Count on from what the agent holds; returns the generation to count from.

    Whoever calls this has looked at what the agent owns and the database does not know: the next intent
    makes the database's view the wanted one. What it does not name stays forwarding, quarantined.
    """
    locked = Router.objects.select_for_update(no_key=True).get(pk=router.pk)
    if held > locked.generation:
        Router.objects.filter(pk=locked.pk).update(generation=held)
        announce(
            "router.reconciled",
            now=now,
            router_id=locked.pk,
            actor=actor,
            data={"from": locked.generation, "to": held},
        )
    RouterConvergence.objects.filter(router=locked).update(last_error="", reconcile_requested_at=None)
    converge_routers_anew([locked.pk], now=now)
    return max(held, locked.generation)
