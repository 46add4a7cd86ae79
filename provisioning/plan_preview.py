"""The routers' plans for an order that is pending approval.

Each router's agent makes the plan of its router, and changes nothing in VPP.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from portal.core import clock
from portal.core.errors import DomainError
from portal.core.reader_texts import in_english
from portal.inventory.models import Router
from portal.vll.models import Order, PlanResult, Vll
from portal.vll.operations.order_approval import approved_order_continue, intent_digests, plan_finish
from provisioning.agent_client import Refused, Unreachable, agent_of
from provisioning.intent_document import RouterIntent
from provisioning.intent_generations import router_intent


@dataclass(frozen=True, slots=True)
class RouterPlan:
    """One router's response (docs/reference/agent-api.md, POST /v1/plan), narrowed to the order's VLL.

    * ``operations``: in the order of execution, each with ``n``, ``stage``, ``end``, ``message``, ``cli`` and
      ``why``.
    * ``ends``: the ends that would be pending or in conflict, each with the reason.
    * ``differences``: ``end``, ``field``, ``before`` and ``after`` of each changed member of the intent.
    * ``error``: why there is no plan, or "".
    * ``digest``: the digest of the router's other lines (``portal.vll.operations.order_approval``).
    """

    router: Router
    digest: str
    intent: RouterIntent
    differences: list[dict[str, Any]]
    operations: list[dict[str, Any]]
    ends: list[dict[str, Any]]
    error: str


def pending_order_preview(order: Order, *, now: datetime) -> list[RouterPlan]:
    """Return the plan of each router of an order that is pending approval, keyed by the router's name.

    Raises WrongOrderState if the order is no longer pending, and a TransportRefused if it cannot be approved.
    """
    vll = str(order.vll_id)
    intents = _intents(order, now)
    before = {router: router_intent(router, generation=router.generation) for router, _digest, _ in intents}
    return [
        _request_plan(router, digest, intent, _differences(before[router], intent, vll), order)
        for router, digest, intent in intents
    ]


def plan_make(plan_id: UUID) -> None:
    """Make a requested plan and store it. A plan that is already finished stays as it is."""
    plan = PlanResult.objects.select_related("order").filter(pk=plan_id, finished_at__isnull=True).first()
    if plan is None:
        return
    try:
        routers = [_kept(preview) for preview in pending_order_preview(plan.order, now=clock.now())]
    except DomainError as error:
        with in_english():
            refusal = {"code": error.code, "message": error.sentence}
        plan_finish(plan_id=plan_id, routers=[], refusal=refusal, now=clock.now())
    else:
        plan_finish(plan_id=plan_id, routers=routers, refusal=None, now=clock.now())


def _kept(preview: RouterPlan) -> dict[str, Any]:
    return {
        "router": preview.router.pk,
        "name": preview.router.name,
        "generation": preview.router.generation,
        "told": preview.digest,
        "differences": preview.differences,
        "operations": preview.operations,
        "ends": preview.ends,
        "error": preview.error,
    }


def _intents(order: Order, now: datetime) -> list[tuple[Router, str, RouterIntent]]:
    """Return the intent of each router: approve the order, read the rows, and roll back.

    The intent is the final one, after the line's activation test. It comes with the digest of the router's
    other lines. The digest is read before the other rows, so that a change between the two reads makes the
    plan outdated.
    """
    with transaction.atomic():
        approved_order_continue(order, actor="", now=now)
        vll = Vll.objects.get(pk=order.vll_id)
        concerned = Router.objects.filter(ports__vll_ends__vll=vll) | Router.objects.filter(
            vll_tombstones__vll=vll
        )
        routers = list(concerned.distinct().order_by("name"))
        digests = intent_digests([router.pk for router in routers], apart=vll.pk)
        intents = [
            (
                router,
                digests[router.pk],
                router_intent(router, generation=router.generation + 1).handed_over(vll.pk),
            )
            for router in routers
        ]
        transaction.set_rollback(True)
    return intents


def _differences(before: RouterIntent, after: RouterIntent, vll: str) -> list[dict[str, Any]]:
    """Compare two intents. Return the members that differ, for each end of ``vll``."""
    was, will_be = (dict(_members(intent, vll)) for intent in (before, after))
    return [
        {"end": end, "field": name, "before": was.get((end, name)), "after": will_be.get((end, name))}
        for end, name in sorted(was | will_be)
        if was.get((end, name)) != will_be.get((end, name))
    ]


def _members(intent: RouterIntent, vll: str) -> Iterator[tuple[tuple[str, str], Any]]:
    """Yield the members of the wanted ends, for example ``(("a", "transport.vni"), 70001)``."""
    for end in json.loads(intent.document())["present"]:
        if end["vll"] == vll:
            for name, value in end.items():
                inner = value if isinstance(value, dict) else {"": value}
                for part, each in inner.items():
                    if name not in ("vll", "end", "revision"):
                        yield (end["end"], f"{name}.{part}".rstrip(".")), each


def _request_plan(
    router: Router, digest: str, intent: RouterIntent, differences: list[dict[str, Any]], order: Order
) -> RouterPlan:
    request_ids = [order.request_id] if order.request_id else []
    with agent_of(router) as agent:
        response = agent.plan(intent.document(), request_ids=request_ids)
    match response:
        case Unreachable(error):
            return RouterPlan(router, digest, intent, differences, [], [], error)
        case Refused(problem=problem):
            error = str(problem.get("detail") or response.type)
            return RouterPlan(router, digest, intent, differences, [], [], error)
        case _:
            operations, ends = (
                [each for each in response[name] if each["vll"] == str(order.vll_id)]
                for name in ("operations", "ends")
            )
            return RouterPlan(router, digest, intent, differences, operations, ends, "")
