"""The progress of orders: answers of routers, attempts, and orders that are overdue."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce

from portal.core.background_work import each_row
from portal.core.db.statements import execute, rows_of
from portal.inventory.models import Port, Router
from portal.vll.line_allocation import leases_settle
from portal.vll.line_revision import content_of
from portal.vll.models import Attempt, Order, Vll, VllEnd, VllTombstone
from portal.vll.operations.activation_test_lifecycle import activation_test_not_possible, activation_test_send
from portal.vll.operations.order_endings import forced_settle, interruption_ends, order_undo, removal_finish
from portal.vll.operations.revision_create import revise
from portal.vll.operations.state_compare_and_swap import lifecycle_move, order_announce, order_move, sync_move
from portal.vll.operations.tombstones import EndAnswer, stored_answers, tombstones_settle
from portal.vll.states import (
    IN_SERVICE,
    IN_SERVICE_ACTIONS,
    TERMINAL_ORDER_STATES,
    AdminStatus,
    Handover,
    Lifecycle,
    OrderState,
)

# _NUMBERS: members that differ in every answer. _ENDS: the members about ends.
_NUMBERS = frozenset({"generation", "held", "look"})
_ENDS = frozenset({"ends", "unchanged"})
# The number of rows in one transaction, and the time limit in seconds. The next round handles the rest.
_BATCH = 1000
_LONGEST_S = 30.0


def attempt_record(
    *,
    router: Router,
    generation: int,
    intent_sha256: str,
    content_sha256: str,
    outcome: Attempt.Outcome,
    answer: dict[str, Any],
    started_at: datetime,
    now: datetime,
) -> int:
    """Record an attempt. If the router's newest attempt is equal, only increase its count. Return the count.

    Attempts are equal if their outcomes, wanted states and answers are equal. The member ``ends`` of an
    answer lists only ends whose answer differs from the stored one.
    """
    last = router.attempts.defer("answer").order_by("-id").first()
    if (
        last is not None
        and (last.outcome, last.content_sha256) == (outcome, content_sha256)
        and last.generation <= generation
        and _is_same_answer(last.answer, answer)
    ):
        mine = Attempt.objects.filter(pk=last.pk, times=last.times)
        if mine.update(
            times=last.times + 1,
            generation=generation,
            intent_sha256=intent_sha256,
            finished_at=max(now, last.finished_at),
        ):
            return last.times + 1
    Attempt.objects.create(
        router=router,
        generation=generation,
        intent_sha256=intent_sha256,
        content_sha256=content_sha256,
        outcome=outcome,
        answer=answer,
        started_at=started_at,
        finished_at=now,
    )
    return 1


def _is_same_answer(before: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Return whether the answers are equal apart from numbers.

    In an answer without ``ends``, the answer about each end equals the stored one.
    """
    left_out = _NUMBERS if answer.get("ends") else _NUMBERS | _ENDS
    return _without(left_out, before) == _without(left_out, answer)


def _without(names: frozenset[str], answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in names}


def attempts_forget(*, before: datetime) -> int:
    """Delete the attempts that were last repeated before ``before``; return how many.

    Three kinds stay: a router's newest attempt, the attempts of open orders, and, for each end and revision,
    the last attempt with an answer about them. The third kind includes the last answer to each order. The
    oldest attempts are deleted first. The next round continues if this one reaches the time limit.
    """
    begun = time.monotonic()
    examined, forgotten = _forget_batch(before)
    while examined == _BATCH and time.monotonic() - begun < _LONGEST_S:
        examined, deleted = _forget_batch(before)
        forgotten += deleted
    return forgotten


@transaction.atomic
def _forget_batch(before: datetime) -> tuple[int, int]:
    execute("SELECT set_config('longline.attempts_before', %s, true)", [before.isoformat()])
    old = [pk for (pk,) in rows_of(_OLD, {"before": before, "most": _BATCH})]
    execute(_KEEP, [old])
    return len(old), execute(_FORGET, [old])


_OLD = """
SELECT a.id FROM vll_attempt a
WHERE NOT a.kept AND a.started_at < %(before)s AND a.finished_at < %(before)s AND NOT attempt_is_needed(a)
ORDER BY a.started_at LIMIT %(most)s
"""
_KEEP = "UPDATE vll_attempt a SET kept = true WHERE a.id = ANY(%s) AND attempt_has_a_last_word(a)"
_FORGET = "DELETE FROM vll_attempt WHERE id = ANY(%s) AND NOT kept"


# An order that is open for longer than this gets an alarm.
OVERDUE = timedelta(seconds=110)


def orders_overdue_alarm(*, now: datetime) -> int:
    """Raise the alarm once for each order that is open for too long; return how many.

    Each order has its own transaction. Orders pending approval get no alarm, because they wait for the NOC.
    """
    overdue = list(_overdue(now).order_by("pk").values_list("pk", flat=True))
    return sum(each_row(overdue, lambda pk: _alarm(pk, now), what="the alarm of an overdue order"))


def _overdue(now: datetime) -> QuerySet[Any]:
    return (
        Order.objects.alias(begun_at=Coalesce("approved_at", "ordered_at"))
        .filter(begun_at__lt=now - OVERDUE, alarmed_at__isnull=True)
        .exclude(state__in=[*TERMINAL_ORDER_STATES, OrderState.PENDING_APPROVAL])
    )


@transaction.atomic
def _alarm(pk: UUID, now: datetime) -> int:
    """Raise the alarm of one order; return 0 if the order has ended or another process has locked it."""
    order = _overdue(now).filter(pk=pk).select_for_update(skip_locked=True, no_key=True).first()
    if order is None:
        return 0
    Order.objects.filter(pk=order.pk).update(alarmed_at=now)
    order_announce("order.overdue", order, now=now, state=order.state)
    return 1


_REFUSALS = (VllEnd.Status.CONFLICT, VllEnd.Status.FAILED)


def answers_take(
    *,
    router: Router,
    answers: Sequence[EndAnswer],
    now: datetime,
    go_on: Callable[[], bool] = lambda: True,
) -> bool:
    """Record each answer and settle its VLL, in one transaction for each VLL.

    Answers about ends of other routers, or about revisions that were never requested, are ignored. Thousands
    of VLLs take a while, so the caller can end the work early: ``go_on`` is called before each VLL. If it
    returns False, this function also returns False. A later call with the same answers processes the
    remaining VLLs.
    """
    by_vll: dict[Any, list[EndAnswer]] = {}
    for answer in answers:
        by_vll.setdefault(answer.vll, []).append(answer)
    unsettled = _with_changes(router, by_vll)
    for vll_id in sorted(unsettled):
        if not go_on():
            return False
        _advance_one(vll_id, router, by_vll[vll_id], now)
    return True


def _with_changes(router: Router, by_vll: dict[Any, list[EndAnswer]]) -> set[Any]:
    """Return the VLLs with new answers, and those with a tombstone on this router.

    If all answers equal the stored answers, nothing is written.
    """
    stored = stored_answers(router, by_vll)
    return {
        answer.vll
        for answers in by_vll.values()
        for answer in answers
        if (answer.vll, answer.side) in stored
        and stored[answer.vll, answer.side] != (answer.status, answer.revision, answer.reason, answer.policed)
    } | set(VllTombstone.objects.filter(vll__in=by_vll, router=router).values_list("vll", flat=True))


@transaction.atomic
def _advance_one(vll_id: Any, router: Router, answers: list[EndAnswer], now: datetime) -> None:
    vll = Vll.objects.locked().get(pk=vll_id)
    orders = list(vll.orders.filter(~Q(state__in=TERMINAL_ORDER_STATES) | Q(forced__isnull=False)))
    order = next((each for each in orders if not each.is_terminal), None)
    for answer in answers:
        if answer.revision <= vll.revision:
            VllEnd.objects.filter(
                vll=vll,
                side=answer.side,
                port__in=Port.objects.filter(router=router),
                status_revision__lte=answer.revision,
            ).update(
                status=answer.status,
                status_revision=answer.revision,
                status_at=now,
                status_observation=answer.look,
                reason=answer.reason,
                policed=answer.policed,
            )
    tombstones_settle(vll, router, answers, now=now)
    if order is not None and order.state == OrderState.ACKNOWLEDGED:
        order_move(order, OrderState.IN_PROGRESS, now=now)
    if vll.wanted_present:
        _settle_present(vll, order, answers, router, now)
    else:
        _settle_removed(vll, order, now)
    if forced := [each for each in orders if each.forced is not None]:
        forced_settle(vll, forced, now=now)


def _all_ends_are(vll: Vll, status: str) -> bool:
    return vll.ends.filter(status=status, status_revision=vll.revision).count() == 2


def _settle_present(
    vll: Vll, order: Order | None, answers: list[EndAnswer], router: Router, now: datetime
) -> None:
    """Put the line in service only when both ends are applied and read back at the wanted revision."""
    verified = _all_ends_are(vll, VllEnd.Status.VERIFIED)
    if vll.admin_status == AdminStatus.TESTING:
        _settle_testing(vll, now)
    elif vll.lifecycle in IN_SERVICE:
        sync_move(vll.pk, verified, now=now)
    elif vll.in_sync != verified:
        Vll.objects.filter(pk=vll.pk).update(in_sync=verified, in_sync_since=now)
    if order is None:
        # An order that was ended by force cannot make its last step, so make that step now.
        if verified and vll.lifecycle != _lifecycle_of(vll):
            lifecycle_move(vll, _lifecycle_of(vll), now=now)
        return
    # A modify pending approval has not been sent to any router yet.
    if order.state == OrderState.PENDING_APPROVAL:
        return
    if verified and order.revision == vll.revision and vll.admin_status != AdminStatus.TESTING:
        _settle_verified(vll, order, now)
        return
    refusal = next(
        (a for a in answers if a.permanent and a.status in _REFUSALS and a.revision == vll.revision), None
    )
    giving_up = order.failure is not None or order.state == OrderState.PENDING_CANCELLATION
    if refusal is not None and not giving_up:
        _give_up_after(refusal, vll, order, router, now)


def _settle_testing(vll: Vll, now: datetime) -> None:
    """Begin the test when both ends have the tunnel and neither is connected to the customer.

    If a router has connected the customer, it can no longer test, so the test ends.
    """
    there = [VllEnd.Status.TESTING, VllEnd.Status.VERIFIED]
    statuses = list(
        vll.ends.filter(status__in=there, status_revision=vll.revision).values_list("status", flat=True)
    )
    if len(statuses) < 2:
        return
    if VllEnd.Status.VERIFIED in statuses:
        activation_test_not_possible(vll, now=now)
    else:
        activation_test_send(vll)


def _settle_verified(vll: Vll, order: Order, now: datetime) -> None:
    """End the order, because both ends are verified, and release the resources that the line no longer needs.

    An order that fails or is cancelled may have moved an end to another router. Such an order ends only after
    that router has confirmed that nothing of the order is left, so that a user can repeat the order
    immediately (ADR 4).
    """
    if vll.handover == Handover.ADOPT:
        _into_service(vll, order, now)
        return
    undone = order.failure is not None or order.state == OrderState.PENDING_CANCELLATION
    left = dict(vll.tombstones.filter(revision=vll.revision).values_list("side", "leases"))
    if undone and left:
        return
    if order.action in IN_SERVICE_ACTIONS:
        interruption_ends(order, now=now)
        leases_settle(content_of(vll), owner=vll.pk, spare=order.pk, leftover=left, now=now)
    if order.state == OrderState.PENDING_CANCELLATION:
        order_move(order, OrderState.CANCELLED, now=now)
    else:
        order_move(order, OrderState.FAILED if undone else OrderState.COMPLETED, now=now)
    if vll.handover:
        Vll.objects.filter(pk=vll.pk).update(handover=Handover.NONE)
    lifecycle = _lifecycle_of(vll)
    if vll.lifecycle != lifecycle:
        lifecycle_move(vll, lifecycle, now=now)


def _into_service(vll: Vll, order: Order, now: datetime) -> None:
    """Write the next revision of an adopted line, which adds the policers.

    The adoption itself changes no policers.
    """
    Vll.objects.filter(pk=vll.pk).update(handover=Handover.ADOPTED)
    vll.refresh_from_db()
    revise(vll, content_of(vll), now=now)
    Order.objects.filter(pk=order.pk).update(revision=vll.revision)


def _lifecycle_of(vll: Vll) -> Lifecycle:
    """Return the life cycle state of a line whose ends are both verified."""
    if vll.decommission_at is not None:
        return Lifecycle.PENDING_TERMINATE
    return Lifecycle.ACTIVE if vll.admin_status == AdminStatus.UP else Lifecycle.SUSPENDED


def _give_up_after(refusal: EndAnswer, vll: Vll, order: Order, router: Router, now: datetime) -> None:
    failure = {
        "side": refusal.side,
        "router": router.name,
        "status": refusal.status,
        **(refusal.reason or {}),
    }
    order_undo(order, vll, failure=failure, now=now)


def _settle_removed(vll: Vll, order: Order | None, now: datetime) -> None:
    """Release leases only after both ends have confirmed the removal at exactly this revision."""
    if not _all_ends_are(vll, VllEnd.Status.REMOVED):
        return
    if vll.lifecycle in (Lifecycle.TERMINATED, Lifecycle.CANCELLED):
        return
    removal_finish(vll, order, now=now)
