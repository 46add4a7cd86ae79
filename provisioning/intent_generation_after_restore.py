"""After a backup was restored, let the portal send intents to agents again as soon as a user requests it."""

from datetime import datetime

from django.db import transaction

from portal.accounts import permissions
from portal.accounts.models import User
from portal.events.outbox import announce
from portal.inventory.models import Router
from portal.vll.models import RouterConvergence
from portal.vll.operations.convergence_requests import converge_routers_on_request
from portal.vll.router_operations.actions import RECONCILE_WITHIN
from provisioning.agent_client import Unreachable
from provisioning.converge_job import agent_of


class StateUnavailable(Exception):
    """The agent does not report its stored intent."""


def generation_adopt_on_request(
    *, router_id: int, actor: str, requested_at: datetime | None, now: datetime
) -> int | None:
    """Carry out a pending request for ``generation_adopt``.

    Return None if the request was carried out, dropped or replaced meanwhile, or if its user has lost the
    permission. ``requested_at`` None: a portal of the previous release sent the task and stored no request.
    """
    requested = RouterConvergence.objects.filter(router=router_id)
    if requested_at is not None:
        requested = requested.filter(reconcile_requested_at=requested_at)
        requested.filter(reconcile_requested_at__lt=now - RECONCILE_WITHIN).update(
            reconcile_requested_at=None
        )
        if not requested.exists():
            return None
    user = User.objects.filter(username=actor).first()
    if user is None or not permissions.may_run_the_network(user):
        requested.update(reconcile_requested_at=None)
        return None
    return generation_adopt(router_id=router_id, actor=actor, requested_at=requested_at, now=now)


def generation_adopt(
    *, router_id: int, actor: str, now: datetime, requested_at: datetime | None = None
) -> int | None:
    """Query the agent's stored intent and continue from its generation.

    Return None if there is no agent to query, or the request of ``requested_at`` is over. Raises
    StateUnavailable if the agent does not report its intent. The task logs the error, and the alarm stays
    until a reconciliation succeeds.
    """
    router = Router.objects.exclude(agent_url="").filter(pk=router_id).first()
    if router is None:
        return None
    with agent_of(router) as agent:
        stored = agent.stored_intent()
    if isinstance(stored, Unreachable):
        raise StateUnavailable(f"{router.name} does not report its state: {stored.error}")
    return generation_count_from(
        router=router, stored=stored.generation, actor=actor, now=now, requested_at=requested_at
    )


@transaction.atomic
def generation_count_from(
    *, router: Router, stored: int, actor: str, now: datetime, requested_at: datetime | None = None
) -> int | None:
    """Continue from the generation ``stored`` of the agent; return the router's new generation.

    The next intent enforces the state of the database. So before the call, somebody must have checked the
    agent's objects that the database does not contain. Lines that the intent does not name keep forwarding
    and are quarantined. Return None if the request of ``requested_at`` is over.
    """
    locked = Router.objects.select_for_update(no_key=True).get(pk=router.pk)
    requested = RouterConvergence.objects.filter(router=locked, reconcile_requested_at=requested_at)
    if requested_at is not None and not requested.exists():
        return None
    if stored > locked.generation:
        Router.objects.filter(pk=locked.pk).update(generation=stored)
        announce(
            "router.reconciled",
            now=now,
            router_id=locked.pk,
            actor=actor,
            data={"from": locked.generation, "to": stored},
        )
    RouterConvergence.objects.filter(router=locked).update(last_error="", reconcile_requested_at=None)
    converge_routers_on_request([locked.pk], now=now)
    return max(stored, locked.generation)
