"""The first and the last step of a removal: what routers must do, and what follows their confirmation."""

from datetime import datetime
from typing import Any

from portal.vll.models import Order, Vll
from portal.vll.operations.resource_leases import leases_release
from portal.vll.operations.state_compare_and_swap import lifecycle_move, order_move
from portal.vll.states import Handover, Lifecycle, OrderAction, OrderState


def removal_values(vll: Vll) -> dict[str, Any]:
    """Return field values of the next revision, which removes both ends.

    If the removal undoes an adoption, the portal only stops managing the line, because the line existed
    before.
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
