"""The NOC's actions on an order that does not end: retry it, or end it without the routers' confirmation.

A forced end releases nothing that a router may still have. The leases at a router stay until it confirms the
line's present wanted state. A tunnel stays leased until all its routers have confirmed.
"""

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction

from portal.accounts import permissions
from portal.accounts.models import User
from portal.events.outbox import announce
from portal.vll.convergence.requests import converge_routers_on_request
from portal.vll.errors import NotForYouToDecide, NotForYouToForce, WrongOrderState
from portal.vll.line_spec import content_of
from portal.vll.models import Order, Vll, VllEnd
from portal.vll.operations.line_interruption import interruption_ends
from portal.vll.operations.resource_leases import leases_settle, ports_release, tunnel_release
from portal.vll.operations.state_compare_and_swap import order_move
from portal.vll.states import TERMINAL_ORDER_STATES, OrderAction, OrderState


@transaction.atomic
def order_force_retry(*, user: User, order: Order, now: datetime) -> Order:
    """Send the order to its routers again now, and skip all pauses after failures.

    Raises NotForYouToDecide. Raises WrongOrderState for an order that is pending approval or has ended.
    """
    if not permissions.may_run_the_network(user):
        raise NotForYouToDecide
    order, vll = _locked(order)
    if order.is_terminal or order.state == OrderState.PENDING_APPROVAL:
        raise WrongOrderState(state=order.state, action="force-retry")
    routers = {
        *vll.ends.values_list("port__router_id", flat=True),
        *vll.tombstones.values_list("router_id", flat=True),
    }
    _announce("order.retry_forced", order, user=user, now=now)
    converge_routers_on_request(routers, now=now)
    return order


@transaction.atomic
def order_force_end(*, user: User, order: Order, reason: str, now: datetime) -> Order:
    """End, without the routers' confirmation, an order that is being undone or that removes its line.

    The order becomes cancelled if a user has cancelled it, and failed otherwise. The customer can read
    ``reason``. Raises NotForYouToForce. Raises WrongOrderState for an order that is pending
    approval or has ended. Also raises WrongOrderState for an add, a modify or a test that is not being undone
    yet: cancel that order first.
    """
    if not permissions.may_remove_from_the_network(user):
        raise NotForYouToForce
    order, vll = _locked(order)
    if not may_be_ended(order):
        raise WrongOrderState(state=order.state, action="force-end")
    if order.state == OrderState.ACKNOWLEDGED:
        order_move(order, OrderState.IN_PROGRESS, now=now)
    cancelled = order.state == OrderState.PENDING_CANCELLATION
    failure = order.failure or {"code": "ended-by-the-noc", "message": reason}
    _announce("order.end_forced", order, user=user, now=now, reason=reason)
    order_move(
        order,
        OrderState.CANCELLED if cancelled else OrderState.FAILED,
        now=now,
        actor=user.username,
        failure=failure,
        forced={"by": user.username, "reason": reason, "at": now.isoformat()},
    )
    interruption_ends(order, now=now)
    # The order no longer explains the routers' differences from the wanted state.
    Vll.objects.filter(pk=vll.pk, in_sync=False).update(in_sync_since=now)
    forced_settle(vll, [order], now=now)
    return order


def may_be_ended(order: Order) -> bool:
    """Return whether the order may be ended by force: it is being undone, or it removes its line."""
    if order.is_terminal or order.state == OrderState.PENDING_APPROVAL:
        return False
    return (
        order.failure is not None
        or order.state == OrderState.PENDING_CANCELLATION
        or order.action == OrderAction.DELETE
    )


def forced_settle(vll: Vll, forced: Iterable[Order], *, now: datetime) -> None:
    """Release the leases of orders that were ended by force, as far as the routers have confirmed the line.

    If such an order has enlarged a lease of the line, the additional part is released last, when no other
    order may need it. The caller has locked the VLL and settled its open order.
    """
    ends, left = _unconfirmed_ends(vll), _left(vll)
    is_open = vll.orders.exclude(state__in=TERMINAL_ORDER_STATES).exists()
    for order in forced:
        if vll.wanted_present and not is_open and not ends and not left:
            leases_settle(content_of(vll), owner=vll.pk, spare=order.pk, now=now)
            continue
        ports_release(order.pk, kept_at=ends | left)
        if not ends:
            tunnel_release(order.pk, now=now)


def may_have_what_was_forced(vll: Vll) -> bool:
    """Return whether a router may still have configuration of an order that was ended by force."""
    forced = vll.orders.filter(forced__isnull=False).exists()
    return forced and bool(_unconfirmed_ends(vll) or _left(vll))


def _unconfirmed_ends(vll: Vll) -> set[tuple[str, int]]:
    """Return the side and router of each end whose present wanted state its router has not confirmed."""
    wanted = VllEnd.Status.VERIFIED if vll.wanted_present else VllEnd.Status.REMOVED
    ends = vll.ends.exclude(status=wanted, status_revision=vll.revision)
    return set(ends.values_list("side", "port__router"))


def _left(vll: Vll) -> set[tuple[str, int]]:
    return set(vll.tombstones.values_list("side", "router"))


def _locked(order: Order) -> tuple[Order, Vll]:
    vll = Vll.objects.locked().get(pk=order.vll_id)
    return Order.objects.get(pk=order.pk), vll


def _announce(kind: str, order: Order, *, user: User, now: datetime, **data: str) -> None:
    announce(
        kind,
        now=now,
        customer_id=order.customer_id,
        vll_id=order.vll_id,
        order_id=order.pk,
        actor=user.username,
        data={"action": order.action, **data},
    )
