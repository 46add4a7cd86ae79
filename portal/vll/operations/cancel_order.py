"""Cancel an order: immediately if it is pending approval, otherwise when both routers have undone it."""

from datetime import datetime

from django.db import transaction

from portal.accounts import permissions
from portal.accounts.models import User
from portal.vll.convergence.requests import converge_routers_of
from portal.vll.errors import NotAllowedToOrder, WrongOrderState
from portal.vll.line_spec import LineRevision, content_of
from portal.vll.models import Order, Vll
from portal.vll.operations.force_order_end import may_have_what_was_forced
from portal.vll.operations.removal_steps import removal_values
from portal.vll.operations.resource_leases import leases_release, leases_settle
from portal.vll.operations.revision_create import revise
from portal.vll.operations.state_compare_and_swap import lifecycle_move, order_move
from portal.vll.states import IN_SERVICE_ACTIONS, Handover, Lifecycle, OrderAction, OrderState


@transaction.atomic
def order_cancel(*, user: User, order: Order, now: datetime) -> Order:
    """Cancel an open order: remove a new line, undo a change, or rebuild a line whose removal has begun.

    Raises NotAllowedToOrder. Raises WrongOrderState for an order that has ended, is failing or is being
    cancelled already, and for an order that lets the line go.
    """
    vll = Vll.objects.locked().select_related("customer").get(pk=order.vll_id)
    if not permissions.may_order(user, vll.customer):
        raise NotAllowedToOrder(customer=vll.customer.name)
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
        converge_routers_of(vll, now=now)
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
    # Orders to undo the removal may be newer than the removal. They were cancelled or failed, so they changed
    # nothing.
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
