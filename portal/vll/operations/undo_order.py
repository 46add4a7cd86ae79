"""Giving an order up: what is to be left of it, which its routers have to confirm before it ends."""

from datetime import datetime
from typing import Any

from portal.vll.models import Order, Vll
from portal.vll.operations.cancel_order import fall_back
from portal.vll.operations.convergence_requests import converge_routers_of
from portal.vll.operations.removal_steps import removal_values
from portal.vll.states import IN_SERVICE_ACTIONS, OrderAction


def order_undo(order: Order, vll: Vll, *, failure: dict[str, Any], now: datetime) -> None:
    """A failed add leaves nothing behind, a failed modify or test both ends as they were verified last.

    The order fails, for ``failure``, when both routers have confirmed that. The VLL is locked.
    """
    Order.objects.filter(pk=order.pk).update(failure=failure)
    if order.action == OrderAction.ADD:
        Vll.objects.filter(pk=vll.pk).update(**removal_values(vll))
        converge_routers_of(vll, now=now)
    elif order.action in IN_SERVICE_ACTIONS:
        fall_back(order, vll, now=now)
