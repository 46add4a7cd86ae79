"""Reconciliation with an agent that has a newer intent than the database, after a backup was restored.

The agent reports its intent. A preview shows how the router differs from the database, and the effects of a
reconciliation.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.accounts import permissions
from portal.accounts.models import User
from portal.inventory.models import Router
from portal.vll.convergence.reconciliation import (
    generation_count_from,
    reconciliation_drop,
    reconciliation_is_pending,
)
from provisioning.agent_client import Refused, Unreachable, agent_of
from provisioning.agent_reply_decoder import Owned
from provisioning.intent_generations import router_intent


class StateUnavailable(Exception):
    """The agent does not report its stored intent."""


def generation_adopt_on_request(
    *, router_id: int, actor: str, requested_at: datetime | None, now: datetime
) -> int | None:
    """Carry out a pending request for ``generation_adopt``.

    Return None if the request was carried out, dropped or replaced meanwhile, or if its user has lost the
    permission. ``requested_at`` None: a portal of the previous release sent the task and stored no request.
    """
    if not reconciliation_is_pending(router_id, requested_at=requested_at, now=now):
        return None
    user = User.objects.filter(username=actor).first()
    if user is None or not permissions.may_run_the_network(user):
        reconciliation_drop(router_id, requested_at=requested_at)
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


End = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ReconcilePreview:
    """The effects of a reconciliation of one router.

    ``stored``: the generation of the agent's intent. ``generation``: the generation in the database. Ends are
    ``(line's id, "a" or "z")``. ``quarantined``: ends that the agent owns and the database does not name; the
    reconciliation does not remove them. ``made``: missing ends. ``changed``: ends that differ from the
    database. ``removed``: ends to delete. ``hindered``: ends with an obstacle, each with a sentence about it.
    """

    router: str
    stored: int
    generation: int
    quarantined: dict[End, list[Owned]]
    made: list[End]
    changed: list[End]
    removed: list[End]
    hindered: dict[End, str]

    @property
    def is_behind(self) -> bool:
        return self.stored > self.generation


def reconcile_preview(router: Router) -> ReconcilePreview:
    """Return the preview. Raises StateUnavailable if the agent does not respond, or reports no plan."""
    intent = router_intent(router, generation=max(router.generation, 1))
    with agent_of(router) as agent:
        state = agent.state()
        if isinstance(state, Unreachable):
            raise StateUnavailable(f"{router.name} does not report its state: {state.error}")
        plan = agent.plan(intent.document())
    match plan:
        case Unreachable(error):
            raise StateUnavailable(f"{router.name} does not return a plan: {error}")
        case Refused(problem=problem):
            detail = problem.get("detail") or problem["type"]
            raise StateUnavailable(f"{router.name} does not say what it would do: {detail}")
    owned: dict[End, list[Owned]] = {}
    for each in state.owned:
        owned.setdefault((each.vll, each.end), []).append(each)
    wanted = {(str(key.vll), key.side): key.present for key in intent.end_keys()}
    todo = {(each["vll"], each["end"]) for each in plan["operations"]}
    return ReconcilePreview(
        router=router.name,
        stored=state.stored.generation if state.stored else 0,
        generation=router.generation,
        quarantined={end: owned.get(end, []) for end in _ends(plan["quarantined"])},
        made=sorted(end for end in todo if wanted.get(end) and end not in owned),
        changed=sorted(end for end in todo if wanted.get(end) and end in owned),
        removed=sorted(end for end in todo if not wanted.get(end)),
        hindered={
            (each["vll"], each["end"]): (each["reason"] or {}).get("message", "") for each in plan["ends"]
        },
    )


def _ends(named: Iterable[dict[str, Any]]) -> list[End]:
    return sorted({(each["vll"], each["end"]) for each in named})
