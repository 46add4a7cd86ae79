"""The row and the event of a checked order, and the decision whether it needs approval."""

from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from portal.accounts.models import Customer, User
from portal.core.http.request_id import current_request_id
from portal.events.outbox import announce
from portal.vll.models import Order, Vll
from portal.vll.operations.state_compare_and_swap import order_move
from portal.vll.states import OrderState


def order_acknowledge(
    *,
    vll: Vll,
    action: str,
    revision: int,
    actor: str,
    now: datetime,
    pk: UUID | None = None,
    pending_approval: bool = False,
    data: dict[str, Any] | None = None,
    **also: Any,
) -> Order:
    """Insert the order and announce it: acknowledged, or pending approval.

    The VLL must have no other open order.
    """
    order = Order(
        pk=pk or uuid4(),
        vll=vll,
        customer_id=vll.customer_id,
        action=action,
        revision=revision,
        ordered_by=actor,
        request_id=current_request_id.get(),
        ordered_at=now,
        state_at=now,
        **also,
    )
    order.save(force_insert=True)
    announce(
        "order.acknowledged",
        now=now,
        customer_id=vll.customer_id,
        vll_id=vll.pk,
        order_id=order.pk,
        actor=actor,
        data={"action": order.action, **(data or {})},
    )
    if pending_approval:
        order_move(order, OrderState.PENDING_APPROVAL, now=now)
    return order


def needs_approval(user: User, customer: Customer, peak_bps: int) -> bool:
    """Return whether the NOC must approve this CIR plus EIR (bit/s).

    Orders of NOC staff need no approval.
    """
    limit = customer.approve_up_to_bps
    return limit is not None and peak_bps > limit and not user.is_noc
