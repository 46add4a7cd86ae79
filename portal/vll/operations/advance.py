"""Taking in a router's answers: ends first, then whatever both ends together have become."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from portal.inventory.models import Router
from portal.vll.models import Order, Vll, VllEnd
from portal.vll.operations.answers import EndAnswer
from portal.vll.operations.converging import converge_routers_of
from portal.vll.operations.release import leases_release
from portal.vll.operations.transitions import lifecycle_move, order_move, sync_move
from portal.vll.operations.wanting import no_longer_wanted
from portal.vll.states import IN_SERVICE, TERMINAL_ORDER_STATES, Lifecycle, OrderAction, OrderState

_REFUSALS = (VllEnd.Status.CONFLICT, VllEnd.Status.FAILED)


def advance(*, router: Router, answers: Sequence[EndAnswer], now: datetime) -> None:
    """Record each answer and settle the VLLs it concerns, a transaction for each VLL.

    Answers about ends of other routers, or about revisions that were never asked for, are ignored.
    """
    by_vll: dict[Any, list[EndAnswer]] = {}
    for answer in answers:
        by_vll.setdefault(answer.vll, []).append(answer)
    unsettled = _with_news(router, by_vll)
    for vll_id in sorted(unsettled):
        _advance_one(vll_id, router, by_vll[vll_id], now)


def _with_news(router: Router, by_vll: dict[Any, list[EndAnswer]]) -> set[Any]:
    """The VLLs whose answers differ from what is stored: an apply that changed nothing writes nothing."""
    stored = {
        (vll, side): (status, revision, reason)
        for vll, side, status, revision, reason in VllEnd.objects.filter(
            port__router=router, vll__in=by_vll
        ).values_list("vll", "side", "status", "status_revision", "reason")
    }
    return {
        answer.vll
        for answers in by_vll.values()
        for answer in answers
        if (answer.vll, answer.side) in stored
        and stored[answer.vll, answer.side] != (answer.status, answer.revision, answer.reason)
    } | set(
        # A VLL with an open order is looked at again, in case an earlier look was cut off.
        Order.objects.filter(vll__in=by_vll)
        .exclude(state__in=TERMINAL_ORDER_STATES)
        .values_list("vll", flat=True)
    )


@transaction.atomic
def _advance_one(vll_id: Any, router: Router, answers: list[EndAnswer], now: datetime) -> None:
    vll = Vll.objects.select_for_update().get(pk=vll_id)
    order = vll.orders.exclude(state__in=TERMINAL_ORDER_STATES).first()
    for answer in answers:
        if answer.revision <= vll.revision:
            VllEnd.objects.filter(
                vll=vll, side=answer.side, port__router=router, status_revision__lte=answer.revision
            ).update(
                status=answer.status, status_revision=answer.revision, status_at=now, reason=answer.reason
            )
    if order is not None and order.state == OrderState.ACKNOWLEDGED:
        order_move(order, OrderState.IN_PROGRESS, now=now)
    if vll.wanted_present:
        _settle_present(vll, order, answers, router, now)
    else:
        _settle_removed(vll, order, now)


def _all_ends_are(vll: Vll, status: str) -> bool:
    return vll.ends.filter(status=status, status_revision=vll.revision).count() == 2


def _settle_present(
    vll: Vll, order: Order | None, answers: list[EndAnswer], router: Router, now: datetime
) -> None:
    """Active only when both ends are applied and read back at the revision that is wanted."""
    verified = _all_ends_are(vll, VllEnd.Status.VERIFIED)
    if vll.lifecycle in IN_SERVICE:
        sync_move(vll.pk, verified, now=now)
    elif vll.in_sync != verified:
        Vll.objects.filter(pk=vll.pk).update(in_sync=verified)
    if order is None:
        return
    if verified and order.revision == vll.revision:
        order_move(order, OrderState.COMPLETED, now=now)
        if vll.lifecycle == Lifecycle.PENDING_ACTIVE:
            lifecycle_move(vll, Lifecycle.ACTIVE, now=now)
        return
    refusal = next(
        (a for a in answers if a.for_good and a.status in _REFUSALS and a.revision == vll.revision), None
    )
    if refusal is not None and order.action == OrderAction.ADD:
        _clean_up_after(refusal, vll, order, router, now)


def _clean_up_after(refusal: EndAnswer, vll: Vll, order: Order, router: Router, now: datetime) -> None:
    """A failed add leaves nothing behind: both ends become tombstones; when they are gone the order fails."""
    failure = {
        "side": refusal.side,
        "router": router.name,
        "status": refusal.status,
        **(refusal.reason or {}),
    }
    Order.objects.filter(pk=order.pk).update(failure=failure)
    Vll.objects.filter(pk=vll.pk).update(**no_longer_wanted(vll))
    converge_routers_of(vll, now=now)


def _settle_removed(vll: Vll, order: Order | None, now: datetime) -> None:
    """Leases go back only after both ends confirm this very revision's removal."""
    if not _all_ends_are(vll, VllEnd.Status.REMOVED):
        return
    if vll.lifecycle in (Lifecycle.TERMINATED, Lifecycle.CANCELLED):
        return
    leases_release(vll, now=now)
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
