"""The NOC's decision on an order pending approval. Its resources are leased; no router has received it."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.db import transaction

from portal.accounts import permissions
from portal.accounts.models import User
from portal.allocation.cpu_core_bookings import cores_check
from portal.allocation.gre_leases import usable_gre_addresses
from portal.vll.convergence.requests import converge_routers_of
from portal.vll.errors import GreKeysGone, NotForYouToDecide, TunnelAddressGone, WrongOrderState
from portal.vll.line_spec import LineRevision, content_of
from portal.vll.models import Order, Vll
from portal.vll.operations.cancel_order import unapproved_order_end
from portal.vll.operations.line_request_check import Accepted, check_line, core_loads
from portal.vll.operations.modify_line import order_carry_out
from portal.vll.operations.order_plan_preview import plan_check
from portal.vll.operations.state_compare_and_swap import order_move
from portal.vll.states import OrderAction, OrderState


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
    _check_again(vll, content, in_service, own=(vll.pk, order.pk), now=now)
    order_move(order, OrderState.IN_PROGRESS, now=now, actor=actor, approved_at=now)
    if order.action == OrderAction.ADD:
        converge_routers_of(vll, now=now)
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
    vll: Vll, content: LineRevision, in_service: LineRevision | None, *, own: Collection[UUID], now: datetime
) -> None:
    """Check the order again with its leased resources, because anything may have changed meanwhile.

    The check uses the permissions of the NOC. It does not matter whether the customer's users have lost
    permissions since the order.
    """
    spec = replace(content.spec, transport=content.allocated_transport.value)
    noc = User(noc_role=User.NocRole.NOC)
    found = check_line(
        user=noc,
        spec=spec,
        now=now,
        lock=True,
        owner=vll.customer,
        line=content,
        in_service=in_service,
        own=own,
    )
    accepted = found.accepted(spec)
    _check_tunnel_addresses(content, accepted)
    # The leases still exist. The routers may have fewer cores than at the time of the booking.
    loads = core_loads(accepted.ports, cir_bps=content.cir_bps, transport=content.allocated_transport)
    cores_check(ends=loads, transport=content.allocated_transport)


def _check_tunnel_addresses(content: LineRevision, accepted: Accepted) -> None:
    """Check that the tunnel can still use its leased addresses. Raises GreKeysGone, TunnelAddressGone."""
    family = content.allocated_transport.family
    if family is None:
        return
    routers = {side: port.router for side, port in accepted.ports.items()}
    if content.gre_key is not None and not accepted.selected.gre_key:
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
