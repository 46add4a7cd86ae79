"""The end of a line that is to be gone: its leases go back, and its last order ends with it."""

from datetime import datetime

from portal.vll.models import Order, Vll
from portal.vll.operations.leasing import leases_release
from portal.vll.operations.transitions import lifecycle_move, order_move
from portal.vll.states import Lifecycle, OrderAction, OrderState


def line_end(vll: Vll, order: Order | None, *, now: datetime) -> None:
    """For a caller who has locked the VLL and knows that it is gone; ``order``: the open one."""
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
