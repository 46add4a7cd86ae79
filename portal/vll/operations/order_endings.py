"""The ends of orders that do not complete: cancelled, undone after a refusal, or ended by the NOC."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import transaction

from portal.accounts import permissions
from portal.accounts.models import User
from portal.vll.convergence.requests import converge_routers_of, converge_routers_on_request
from portal.vll.errors import NotForYouToDecide, NotForYouToForce, WrongOrderState
from portal.vll.line_allocation import leases_release, leases_settle, ports_release, tunnel_release
from portal.vll.line_revision import LineRevision, content_of
from portal.vll.line_rules import check_may_order
from portal.vll.models import ActivationTest, Order, Vll, VllEnd
from portal.vll.operations.revision_create import revise
from portal.vll.operations.state_compare_and_swap import lifecycle_move, order_announce, order_move
from portal.vll.states import (
    IN_SERVICE_ACTIONS,
    TERMINAL_ORDER_STATES,
    Handover,
    Lifecycle,
    OrderAction,
    OrderState,
)


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
    order_announce("order.retry_forced", order, now=now, actor=user.username)
    converge_routers_on_request(routers)
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
    order_announce("order.end_forced", order, now=now, actor=user.username, reason=reason)
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


def order_undo(order: Order, vll: Vll, *, failure: dict[str, Any], now: datetime) -> None:
    """Remove the line of a failed add, or return the line of a failed modify or test to its former content.

    The order fails with ``failure`` when both routers have confirmed the removal or the former content. The
    caller has locked the VLL.
    """
    Order.objects.filter(pk=order.pk).update(failure=failure)
    if order.action == OrderAction.ADD:
        Vll.objects.filter(pk=vll.pk).update(**removal_values(vll))
        converge_routers_of(vll)
    elif order.action in IN_SERVICE_ACTIONS:
        fall_back(order, vll, now=now)


@transaction.atomic
def order_cancel(*, user: User, order: Order, now: datetime) -> Order:
    """Cancel an open order: remove a new line, undo a change, or rebuild a line whose removal has begun.

    Raises NotAllowedToOrder. Raises WrongOrderState for an order that has ended, is failing or is being
    cancelled already, and for an order that lets the line go.
    """
    vll = Vll.objects.locked().select_related("customer").get(pk=order.vll_id)
    check_may_order(user, vll.customer)
    return cancel_locked(Order.objects.get(pk=order.pk), vll, actor=user.username, now=now)


def cancel_locked(order: Order, vll: Vll, *, actor: str, now: datetime) -> Order:
    """Cancel as ``order_cancel`` does. The caller has locked the VLL and then read the order."""
    letting_go = vll.handover == Handover.RELEASE
    if order.is_terminal or order.failure or order.state == OrderState.PENDING_CANCELLATION or letting_go:
        raise WrongOrderState(state=order.state, action="cancel")
    if order.state == OrderState.PENDING_APPROVAL:
        unapproved_order_end(order, vll, OrderState.CANCELLED, actor=actor, now=now)
        return order
    if order.state == OrderState.ACKNOWLEDGED:
        order_move(order, OrderState.IN_PROGRESS, now=now, actor=actor)
    order_move(order, OrderState.PENDING_CANCELLATION, now=now, actor=actor)
    if order.action == OrderAction.ADD:
        Vll.objects.filter(pk=vll.pk).update(**removal_values(vll))
        vll.refresh_from_db()
        converge_routers_of(vll)
    elif order.action in IN_SERVICE_ACTIONS:
        fall_back(order, vll, now=now)
    else:
        # All leases still exist: they are released only after both routers have confirmed the removal.
        revise(vll, content_before_removal(vll), now=now)
        Order.objects.filter(pk=order.pk).update(revision=vll.revision)
    order.refresh_from_db()
    return order


def content_before_removal(vll: Vll) -> LineRevision:
    """Return the content of a line as it was before its removal was ordered."""
    if vll.decommission_at is None:
        return content_of(vll)
    # Orders to undo the removal may be newer. They were cancelled or failed, so they changed nothing.
    for order in vll.orders.filter(action=OrderAction.MODIFY).order_by("-ordered_at", "-id"):
        before, after = (LineRevision.from_json(kept or {}) for kept in (order.before, order.after))
        if before.decommission_at is None and after.decommission_at is not None:
            return before
    raise ValueError(f"no order of {vll.pk} began its cooling-off")


def fall_back(order: Order, vll: Vll, *, now: datetime) -> None:
    """Write the content from before a modify order as the next revision, so that both ends return to their
    verified state.
    """
    revise(vll, LineRevision.from_json(order.before or {}), now=now)
    Order.objects.filter(pk=order.pk).update(revision=vll.revision)
    order.refresh_from_db()


def unapproved_order_end(
    order: Order, vll: Vll, state: str, *, actor: str, now: datetime, **also: object
) -> None:
    """End an order that was never sent to a router, and release its leases. The caller has locked the VLL."""
    if order.action == OrderAction.ADD:
        leases_release(vll.pk, now=now)
        lifecycle_move(vll, Lifecycle.CANCELLED, now=now, actor=actor, wanted_present=False)
    elif may_have_what_was_forced(vll):
        # The line's own leases keep their size, because a router may still have them. The routers'
        # confirmation settles them later.
        leases_release(order.pk, now=now)
    else:
        leases_settle(content_of(vll), owner=vll.pk, spare=order.pk, now=now)
    order_move(order, state, now=now, actor=actor, **also)


def removal_values(vll: Vll) -> dict[str, Any]:
    """Return field values of the next revision, which removes both ends.

    If the removal undoes an adoption, the portal only stops managing the line, which existed before.
    """
    adopting = vll.handover in (Handover.ADOPT, Handover.ADOPTED)
    return {
        "wanted_present": False,
        "revision": vll.revision + 1,
        "in_sync": False,
        "handover": Handover.RELEASE if adopting else vll.handover,
    }


def removal_finish(vll: Vll, order: Order | None, *, now: datetime) -> None:
    """Release the leases of a removed line and end its open ``order``, if any.

    The caller has locked the VLL and checked that no confirmation is missing.
    """
    leases_release(vll.pk, now=now)
    given_up = vll.lifecycle == Lifecycle.PENDING_ACTIVE
    lifecycle_move(vll, Lifecycle.CANCELLED if given_up else Lifecycle.TERMINATED, now=now)
    if order is None:
        return
    if order.state == OrderState.PENDING_CANCELLATION:
        order_move(order, OrderState.CANCELLED, now=now)
    elif order.action == OrderAction.DELETE:
        order_move(order, OrderState.COMPLETED, now=now)
    else:
        order_move(order, OrderState.FAILED, now=now)


def interruption_ends(order: Order, *, now: datetime) -> None:
    """Record that an interruption is over: both ends are reconnected, or the portal has stopped waiting."""
    ActivationTest.objects.filter(order=order, interrupted_at__isnull=False, restored_at__isnull=True).update(
        restored_at=now
    )
