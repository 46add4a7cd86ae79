"""What the routers would do if a held order were approved: asked of their agents, and written nowhere."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from portal.inventory.models import Router
from portal.vll.models import Order, Vll
from portal.vll.operations.approve import let_go
from provisioning.agent_client import Refused, Unreachable
from provisioning.generations import router_intent
from provisioning.intent import RouterIntent
from provisioning.jobs import agent_of


@dataclass(frozen=True, slots=True)
class RouterPreview:
    """One router's answer (docs/agent-api.md, POST /v1/plan), narrowed to the order's VLL.

    ``operations``: each with ``n``, ``stage``, ``end``, ``message``, ``cli`` and ``why``, in order; ``ends``:
    those that would be pending or in conflict, with the reason. ``error`` says why there is no plan, or "".
    """

    router: Router
    intent: RouterIntent
    operations: list[dict[str, Any]]
    ends: list[dict[str, Any]]
    error: str


def held_order_preview(order: Order, *, now: datetime) -> list[RouterPreview]:
    """The plan of each router that the held ``order`` concerns, by name.

    Raises WrongOrderState when it is not held any more, and a NotServiceable when it cannot be approved.
    """
    return [_ask(router, intent, str(order.vll_id)) for router, intent in _intents(order, now)]


def _intents(order: Order, now: datetime) -> list[tuple[Router, RouterIntent]]:
    """What each router would be sent: the order is let go, the rows are read, and all of it is undone."""
    with transaction.atomic():
        let_go(order, actor="", now=now)
        vll = Vll.objects.get(pk=order.vll_id)
        concerned = Router.objects.filter(ports__vll_ends__vll=vll) | Router.objects.filter(
            vll_tombstones__vll=vll
        )
        intents = [
            (router, router_intent(router, generation=router.generation + 1))
            for router in concerned.distinct().order_by("name")
        ]
        transaction.set_rollback(True)
    return intents


def _ask(router: Router, intent: RouterIntent, vll: str) -> RouterPreview:
    with agent_of(router) as agent:
        answer = agent.plan(intent.document())
    match answer:
        case Unreachable(error):
            return RouterPreview(router, intent, [], [], error)
        case Refused(problem=problem):
            error = str(problem.get("detail") or answer.type)
            return RouterPreview(router, intent, [], [], error)
        case _:
            operations, ends = (
                [each for each in answer[name] if each["vll"] == vll] for name in ("operations", "ends")
            )
            return RouterPreview(router, intent, operations, ends, "")
