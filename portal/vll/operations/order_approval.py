"""Approval of orders by the NOC, and the preview of the routers' plans on which the NOC decides."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import models, transaction

from portal.accounts import permissions
from portal.accounts.models import User
from portal.allocation.cpu_core_bookings import cores_check
from portal.allocation.tunnel_leases import usable_gre_addresses
from portal.celery_tasks import PLAN_ORDER
from portal.core.db.statements import rows_of
from portal.events.task_requests import send_task
from portal.vll.convergence.requests import converge_routers_of
from portal.vll.errors import (
    GreKeysGone,
    NotForYouToDecide,
    PlanIsIncomplete,
    PlanIsStale,
    TunnelAddressGone,
    WrongOrderState,
)
from portal.vll.line_allocation import Current, core_loads
from portal.vll.line_revision import LineRevision, content_of
from portal.vll.models import Order, PlanResult, Vll
from portal.vll.operations.modify_line import order_carry_out
from portal.vll.operations.order_endings import unapproved_order_end
from portal.vll.operations.state_compare_and_swap import order_move
from portal.vll.quote import Quote, quote
from portal.vll.states import TERMINAL_LIFECYCLES, OrderAction, OrderState

# This is longer than queries to two silent routers take. A plan that is not finished after this time was
# lost: the page then asks the user to request it again. No sweep does so, because a sweep cannot know whether
# a worker is still making the plan.
GIVEN_UP = timedelta(seconds=90)


class PlanState(models.TextChoices):
    """The progress of a plan, and whether it is still valid."""

    UNDER_WAY = "underWay"
    READY = "ready"
    STALE = "stale"
    LOST = "lost"


@transaction.atomic
def plan_request(*, user: User, order: Order, now: datetime) -> PlanResult:
    """Request a plan from both routers, or return the plan that is under way.

    Raises NotForYouToDecide, WrongOrderState.
    """
    if not permissions.may_run_the_network(user):
        raise NotForYouToDecide
    order = Order.objects.get(pk=order.pk)
    if order.state != OrderState.PENDING_APPROVAL:
        raise WrongOrderState(state=order.state, action="plan")
    newest = plan_of(order)
    if newest is not None and state_of(newest, now=now) == PlanState.UNDER_WAY:
        return newest
    plan = PlanResult.objects.create(order=order, requested_by=user.username, requested_at=now)
    send_task(PLAN_ORDER, str(plan.pk))
    return plan


def plan_finish(
    *, plan_id: UUID, routers: list[dict[str, Any]], refusal: dict[str, str] | None, now: datetime
) -> None:
    """Store the routers' answers. A plan that was made twice keeps its first answer."""
    unfinished = PlanResult.objects.filter(pk=plan_id, finished_at__isnull=True)
    unfinished.update(routers=routers, refusal=refusal, finished_at=now)


def plan_of(order: Order) -> PlanResult | None:
    """Return the newest plan of the order, or None."""
    return order.plans.order_by("-requested_at").first()


def state_of(plan: PlanResult, *, now: datetime) -> PlanState:
    """Return the state of a plan.

    A plan is stale if the lines of a router have changed since: its answer may then be outdated.
    """
    if plan.finished_at is None:
        return PlanState.UNDER_WAY if now - plan.requested_at < GIVEN_UP else PlanState.LOST
    then = {entry["router"]: entry.get("told") for entry in plan.routers}
    since = intent_digests(then, apart=plan.order.vll_id)
    return PlanState.READY if then == since else PlanState.STALE


def plan_check(order: Order, plan_id: UUID, *, now: datetime) -> None:
    """Check that this is a finished and valid plan of the order, with answers from all routers.

    Raises PlanIsStale, PlanIsIncomplete. A refusal in the plan is not raised here, but by the approval.
    """
    plan = order.plans.filter(pk=plan_id).first()
    if plan is None or state_of(plan, now=now) != PlanState.READY:
        raise PlanIsStale
    silent = [entry["name"] for entry in plan.routers if entry["error"]]
    if silent:
        raise PlanIsIncomplete(routers=", ".join(silent))


@transaction.atomic
def order_approve(*, user: User, order: Order, now: datetime, plan: UUID | None = None) -> Order:
    """Approve an order and send it to the routers, if it would still be accepted unchanged.

    ``plan`` is the plan that the approver has read, if any. Raises NotForYouToDecide, WrongOrderState,
    PlanIsStale, PlanIsIncomplete, GreKeysGone, TunnelAddressGone, and all errors that would refuse the order
    today.
    """
    if not permissions.may_run_the_network(user):
        raise NotForYouToDecide
    order, _vll = _pending_approval(order, "approve")
    if plan is not None:
        plan_check(order, plan, now=now)
    return approved_order_continue(order, actor=user.username, now=now)


@transaction.atomic
def approved_order_continue(order: Order, *, actor: str, now: datetime) -> Order:
    """Approve as ``order_approve`` does, for a caller who checked the permission or rolls back later."""
    order, vll = _pending_approval(order, "approve")
    if order.action == OrderAction.ADD:
        in_service, content = None, content_of(vll)
    else:
        in_service, content = (LineRevision.from_json(kept or {}) for kept in (order.before, order.after))
    _check_again(order, vll, content, in_service, now=now)
    order_move(order, OrderState.IN_PROGRESS, now=now, actor=actor, approved_at=now)
    if order.action == OrderAction.ADD:
        converge_routers_of(vll)
    else:
        order_carry_out(order, vll, content, now=now)
    return order


@transaction.atomic
def order_reject(*, user: User, order: Order, reason: str, now: datetime) -> Order:
    """Refuse an order pending approval. The customer can read ``reason``. The leases are released.

    Raises NotForYouToDecide, WrongOrderState.
    """
    if not permissions.may_run_the_network(user):
        raise NotForYouToDecide
    order, vll = _pending_approval(order, "reject")
    failure = {"code": "rejected", "message": reason}
    unapproved_order_end(order, vll, OrderState.REJECTED, actor=user.username, now=now, failure=failure)
    return order


def _pending_approval(order: Order, action: str) -> tuple[Order, Vll]:
    """Lock and return the order and its VLL.

    A second user who decides at the same time gets WrongOrderState.
    """
    vll = Vll.objects.locked().get(pk=order.vll_id)
    order = Order.objects.get(pk=order.pk)
    if order.state != OrderState.PENDING_APPROVAL:
        raise WrongOrderState(state=order.state, action=action)
    return order, vll


def _check_again(
    order: Order, vll: Vll, content: LineRevision, in_service: LineRevision | None, *, now: datetime
) -> None:
    """Check the order again with its leased resources, because anything may have changed meanwhile.

    The check uses the permissions of the NOC. It does not matter whether the customer's users have lost
    permissions since the order.
    """
    spec = replace(content.spec, transport=content.allocated_transport.value)
    current = Current(
        owner=vll.pk,
        order=order.pk,
        cir_bps=content.cir_bps,
        ends=content.ends,
        customer=vll.customer,
        line=content,
        in_service=in_service,
    )
    quoted = quote(spec, current, user=User(noc_role=User.NocRole.NOC), now=now, lock=True)
    _check_tunnel_addresses(content, quoted)
    # The leases still exist. The routers may have fewer cores than at the time of the booking.
    loads = core_loads(quoted.ports, cir_bps=content.cir_bps, transport=content.allocated_transport)
    cores_check(ends=loads, transport=content.allocated_transport)


def _check_tunnel_addresses(content: LineRevision, quoted: Quote) -> None:
    """Check that the tunnel can still use its leased addresses. Raises GreKeysGone, TunnelAddressGone."""
    family = content.allocated_transport.family
    if family is None:
        return
    routers = {side: port.router for side, port in quoted.ports.items()}
    if content.gre_key is not None and not quoted.chosen.gre_key:
        raise GreKeysGone(a_router=routers["a"].name, z_router=routers["z"].name)
    for side, far in (("a", "z"), ("z", "a")):
        router, address = routers[side], content.ends[side].tunnel_address
        usable: Collection[str | None] = (
            usable_gre_addresses(router, far=routers[far], family=family)
            if content.gre_pair is not None
            else [router.loopback(family)]
        )
        if address not in usable:
            raise TunnelAddressGone(field=f"{side}_end", router=router.name, address=str(address))


# A line's revision represents its whole content, except for the end that link loss forwarding shuts down.
_DIGESTS = """
WITH intended (router, line) AS (
    SELECT port.router_id, concat_ws(' ', line.id, an_end.side, line.revision, line.wanted_present,
                                      nullif(loss.held = an_end.side, false))
    FROM vll_vllend an_end
    JOIN vll_vll line ON line.id = an_end.vll_id
    JOIN inventory_port port ON port.id = an_end.port_id
    LEFT JOIN vll_forwardedlinkloss loss ON loss.vll_id = line.id
    WHERE port.router_id = ANY(%(routers)s) AND line.id <> %(apart)s AND line.lifecycle <> ALL(%(gone)s)
    UNION ALL
    SELECT left_behind.router_id, concat_ws(' ', left_behind.vll_id, left_behind.side, left_behind.revision)
    FROM vll_vlltombstone left_behind
    WHERE left_behind.router_id = ANY(%(routers)s) AND left_behind.vll_id <> %(apart)s
)
SELECT router.id, md5(coalesce(string_agg(intended.line, E'\\n' ORDER BY intended.line), ''))
FROM unnest(%(routers)s::bigint[]) AS router (id)
LEFT JOIN intended ON intended.router = router.id
GROUP BY router.id
"""


def intent_digests(routers: Collection[int], *, apart: UUID) -> dict[int, str]:
    """Return, by router id, a digest of all lines that the router has or must remove, without ``apart``.

    ``apart``: the id of the line to leave out. Sending the same intent again gives the intent a new
    generation, but does not change the digest.
    """
    values: dict[str, Any] = {"routers": sorted(routers), "apart": apart, "gone": sorted(TERMINAL_LIFECYCLES)}
    return dict(rows_of(_DIGESTS, values))
