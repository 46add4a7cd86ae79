"""Differences between a router and the database, and the effects of a reconciliation.

The router's agent reports both.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from portal.inventory.models import Router
from provisioning.agent_client import Refused, Unreachable
from provisioning.agent_reply_decoder import Owned
from provisioning.converge_job import agent_of
from provisioning.intent_generation_after_restore import StateUnavailable
from provisioning.intent_generations import router_intent

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
