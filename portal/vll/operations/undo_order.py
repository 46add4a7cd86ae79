"""Undo a failed order: write the state that its routers must confirm before the order ends."""

from datetime import datetime
from typing import Any

from portal.vll.convergence.requests import converge_routers_of
from portal.vll.models import Order, Vll
from portal.vll.operations.cancel_order import fall_back
from portal.vll.operations.removal_steps import removal_values
from portal.vll.states import IN_SERVICE_ACTIONS, OrderAction


def order_undo(order: Order, vll: Vll, *, failure: dict[str, Any], now: datetime) -> None:
    """Remove the line of a failed add, or return the line of a failed modify or test to its former content.

    The order fails with ``failure`` when both routers have confirmed the removal or the former content. The
    caller has locked the VLL.
    """
    Order.objects.filter(pk=order.pk).update(failure=failure)
    if order.action == OrderAction.ADD:
        Vll.objects.filter(pk=vll.pk).update(**removal_values(vll))
        converge_routers_of(vll, now=now)
    elif order.action in IN_SERVICE_ACTIONS:
        fall_back(order, vll, now=now)
