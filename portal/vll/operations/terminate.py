"""Ordering the removal of a VLL, or giving up one that is not active yet."""

from datetime import datetime

from django.db import transaction

from portal.accounts import policies
from portal.accounts.models import User
from portal.events.operations import announce
from portal.vll.errors import NotAllowedToOrder, OrderIsOpen, WrongLifecycle
from portal.vll.models import Order, Vll
from portal.vll.operations.converging import converge_routers_of
from portal.vll.operations.transitions import lifecycle_move, order_move
from portal.vll.operations.wanting import no_longer_wanted
from portal.vll.states import IN_SERVICE, TERMINAL_ORDER_STATES, Lifecycle, OrderAction, OrderState


@transaction.atomic
def order_delete(*, user: User, vll: Vll, now: datetime) -> Order:
    """Order the removal of ``vll``; its leases are given back when both routers confirm.

    A VLL whose add is still under way is cancelled instead: the answer is then that add order, which
    ends as ``cancelled``. Raises NotAllowedToOrder, OrderIsOpen, WrongLifecycle.
    """
    vll = Vll.objects.select_for_update().get(pk=vll.pk)
    if not policies.may_order(user, vll.customer):
        raise NotAllowedToOrder(customer=vll.customer.name)
    open_order = vll.orders.exclude(state__in=TERMINAL_ORDER_STATES).first()
    if open_order is not None:
        return _cancel(open_order, vll, user=user, now=now)
    if vll.lifecycle not in IN_SERVICE:
        raise WrongLifecycle(lifecycle=vll.lifecycle, action=OrderAction.DELETE)
    lifecycle_move(vll, Lifecycle.PENDING_TERMINATE, now=now, actor=user.username, **no_longer_wanted(vll))
    order = Order.objects.create(
        vll=vll,
        customer_id=vll.customer_id,
        action=OrderAction.DELETE,
        revision=vll.revision,
        ordered_by=user.username,
        ordered_at=now,
        state_at=now,
    )
    announce(
        "order.acknowledged",
        now=now,
        customer_id=vll.customer_id,
        vll_id=vll.pk,
        order_id=order.pk,
        actor=user.username,
        data={"action": order.action},
    )
    converge_routers_of(vll, now=now)
    return order


def _cancel(order: Order, vll: Vll, *, user: User, now: datetime) -> Order:
    if order.action != OrderAction.ADD or order.state == OrderState.PENDING_CANCELLATION or order.failure:
        raise OrderIsOpen(order_id=str(order.pk), action=order.action, state=order.state)
    if order.state == OrderState.ACKNOWLEDGED:
        order_move(order, OrderState.IN_PROGRESS, now=now, actor=user.username)
    order_move(order, OrderState.PENDING_CANCELLATION, now=now, actor=user.username)
    Vll.objects.filter(pk=vll.pk).update(**no_longer_wanted(vll))
    converge_routers_of(vll, now=now)
    return order
