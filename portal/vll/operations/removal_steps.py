"""The first and the last step of a removal: what to aim at, and the end once the routers have confirmed."""

from datetime import datetime
from typing import Any

from portal.vll.models import Order, Vll
from portal.vll.operations.resource_leases import leases_release
from portal.vll.operations.state_compare_and_swap import lifecycle_move, order_move
from portal.vll.states import Handover, Lifecycle, OrderAction, OrderState


def removal_values(vll: Vll) -> dict[str, Any]:
    """Field values of the next revision, in which both ends are to be gone.

    What was adopted by an order that ends in this is let go as it is: it was there before.
    """
    adopting = vll.handover in (Handover.ADOPT, Handover.ADOPTED)
    return {
        "wanted_present": False,
        "revision": vll.revision + 1,
        "in_sync": False,
        "handover": Handover.RELEASE if adopting else vll.handover,
    }


def removal_finish(vll: Vll, order: Order | None, *, now: datetime) -> None:
    """Its leases go back, and its last order ends with it.

    For a caller who has locked the VLL and knows that it is gone; ``order``: the open one.
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
