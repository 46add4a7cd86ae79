"""The routers' plan for a held order, if it were approved: asked of their agents, which change nothing."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from portal.core import clock
from portal.core.errors import DomainError
from portal.core.stored_text import in_english
from portal.inventory.models import Router
from portal.vll.intent_digest import intent_digests
from portal.vll.models import Order, PlanResult, Vll
from portal.vll.operations import plan_finish
from portal.vll.operations.order_approval import held_order_continue
from provisioning.agent_client import Refused, Unreachable
from provisioning.converge_job import agent_of
from provisioning.intent_document import RouterIntent
from provisioning.intent_generations import router_intent


@dataclass(frozen=True, slots=True)
class RouterPlan:
    """One router's answer (docs/reference/agent-api.md, POST /v1/plan), narrowed to the order's VLL.

    ``operations``: each with ``n``, ``stage``, ``end``, ``message``, ``cli`` and ``why``, in order; ``ends``:
    those that would be pending or in conflict, with the reason. ``differences``: ``end``, ``field``,
    ``before`` and ``after`` of each member of the router's intent that would change. ``error`` says why
    there is no plan, or "". ``told``: what the router is told besides (``portal.vll.intent_digest``).
    """

    router: Router
    told: str
    intent: RouterIntent
    differences: list[dict[str, Any]]
    operations: list[dict[str, Any]]
    ends: list[dict[str, Any]]
    error: str


def held_order_preview(order: Order, *, now: datetime) -> list[RouterPlan]:
    """The plan of each router that the held ``order`` concerns, by name.

    Raises WrongOrderState when it is not held any more, and a TransportRefused when it cannot be approved.
    """
    vll = str(order.vll_id)
    intents = _intents(order, now)
    before = {router: router_intent(router, generation=router.generation) for router, _told, _ in intents}
    return [
        _ask(router, told, intent, _differences(before[router], intent, vll), order)
        for router, told, intent in intents
    ]


def plan_make(plan_id: UUID) -> None:
    """Make a plan that was asked for, and keep it; one that is made already stays as it is."""
    plan = PlanResult.objects.select_related("order").filter(pk=plan_id, finished_at__isnull=True).first()
    if plan is None:
        return
    try:
        routers = [_kept(preview) for preview in held_order_preview(plan.order, now=clock.now())]
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
        "told": preview.told,
        "differences": preview.differences,
        "operations": preview.operations,
        "ends": preview.ends,
        "error": preview.error,
    }


def _intents(order: Order, now: datetime) -> list[tuple[Router, str, RouterIntent]]:
    """The intent for each router: the order is let go, the rows are read, and all of it is undone.

    It is what the routers have in the end, after the line's test with frames.
    With each, what it is told besides, which is read first: what changes in between makes the plan stale.
    """
    with transaction.atomic():
        held_order_continue(order, actor="", now=now)
        vll = Vll.objects.get(pk=order.vll_id)
        concerned = Router.objects.filter(ports__vll_ends__vll=vll) | Router.objects.filter(
            vll_tombstones__vll=vll
        )
        routers = list(concerned.distinct().order_by("name"))
        told = intent_digests([router.pk for router in routers], apart=vll.pk)
        intents = [
            (
                router,
                told[router.pk],
                router_intent(router, generation=router.generation + 1).handed_over(vll.pk),
            )
            for router in routers
        ]
        transaction.set_rollback(True)
    return intents


def _differences(before: RouterIntent, after: RouterIntent, vll: str) -> list[dict[str, Any]]:
    """The intent's differences about the ends of ``vll``, member by member."""
    was, will_be = (dict(_members(intent, vll)) for intent in (before, after))
    return [
        {"end": end, "field": name, "before": was.get((end, name)), "after": will_be.get((end, name))}
        for end, name in sorted(was | will_be)
        if was.get((end, name)) != will_be.get((end, name))
    ]


def _members(intent: RouterIntent, vll: str) -> Iterator[tuple[tuple[str, str], Any]]:
    """``(("a", "transport.vni"), 70001)``: the members of the ends that are to be there."""
    for end in json.loads(intent.document())["present"]:
        if end["vll"] == vll:
            for name, value in end.items():
                inner = value if isinstance(value, dict) else {"": value}
                for part, each in inner.items():
                    if name not in ("vll", "end", "revision"):
                        yield (end["end"], f"{name}.{part}".rstrip(".")), each


def _ask(
    router: Router, told: str, intent: RouterIntent, differences: list[dict[str, Any]], order: Order
) -> RouterPlan:
    request_ids = [order.request_id] if order.request_id else []
    with agent_of(router) as agent:
        answer = agent.plan(intent.document(), request_ids=request_ids)
    match answer:
        case Unreachable(error):
            return RouterPlan(router, told, intent, differences, [], [], error)
        case Refused(problem=problem):
            error = str(problem.get("detail") or answer.type)
            return RouterPlan(router, told, intent, differences, [], [], error)
        case _:
            operations, ends = (
                [each for each in answer[name] if each["vll"] == str(order.vll_id)]
                for name in ("operations", "ends")
            )
            return RouterPlan(router, told, intent, differences, operations, ends, "")
