"""Retry a failed order with a new order, because a terminal order never changes."""

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from portal.accounts.models import User
from portal.vll.errors import AlreadyRetried, WrongOrderState
from portal.vll.line_revision import LineRevision, content_of
from portal.vll.line_rules import check_may_order
from portal.vll.models import Order, Vll
from portal.vll.operations.activation_test_on_demand import activation_test_order
from portal.vll.operations.add_line import order_add
from portal.vll.operations.line_removal import order_delete, order_restore
from portal.vll.operations.modify_line import order_modify, order_resume, order_suspend
from portal.vll.states import CALLED_OFF, AdminStatus, Handover, OrderAction, OrderState


@transaction.atomic
def order_retry(*, user: User, order: Order, now: datetime) -> Order:
    """Create and return a new order, whose ``retry_of`` is the failed order. An add also gets a new VLL.

    A failed order leaves nothing behind, so the same values can be ordered again. A removal cannot be
    retried: it continues even if the NOC has ended its order. A failed adoption cannot be retried either,
    because its line is a found line again. Raises NotAllowedToOrder, WrongOrderState, AlreadyRetried, and all
    refusals of the order itself.
    """
    vll = Vll.objects.locked().select_related("customer").get(pk=order.vll_id)
    check_may_order(user, vll.customer)
    order = Order.objects.get(pk=order.pk)
    was_adopted = vll.handover == Handover.RELEASE
    if order.state != OrderState.FAILED or order.action == OrderAction.DELETE or was_adopted:
        raise WrongOrderState(state=order.state, action="retry")
    retries: QuerySet[Order] = Order.objects.filter(retry_of=order).exclude(state__in=CALLED_OFF)
    if again := retries.first():
        raise AlreadyRetried(order_id=str(again.pk))
    if order.action == OrderAction.TEST:
        frame = min(order.activation_tests.get().frame, vll.frame)
        activation_test_order(user=user, vll=vll, now=now, frame=frame, retry_of=order)
        return retries.get()
    if order.action == OrderAction.MODIFY:
        return _change_again(user, order, vll, now)
    return order_add(user=user, spec=content_of(vll).spec, now=now, retry_of=order)


def _change_again(user: User, order: Order, vll: Vll, now: datetime) -> Order:
    before, after = (LineRevision.from_json(kept or {}) for kept in (order.before, order.after))
    if after.decommission_at is not None:
        lasts = after.decommission_at - order.ordered_at
        return order_delete(user=user, vll=vll, now=now, cooling_off=lasts, retry_of=order)
    if before.decommission_at is not None:
        return order_restore(user=user, vll=vll, now=now, retry_of=order)
    if after.admin_status != before.admin_status:
        again = order_resume if after.admin_status == AdminStatus.UP else order_suspend
        return again(user=user, vll=vll, now=now, retry_of=order)
    return order_modify(
        user=user, vll=vll, changes=before.spec.changes_to(after.spec), now=now, retry_of=order
    )
