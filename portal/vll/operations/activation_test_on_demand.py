"""Tests of lines in service that a user requests, for now or for a later time."""

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from portal.accounts.models import User
from portal.core.background_work import each_row
from portal.core.errors import DomainError
from portal.core.reader_texts import in_english
from portal.inventory.models import FRESH
from portal.vll.activation_test_procedure import SIZES
from portal.vll.errors import (
    ActivationTestFrameOutOfRange,
    ActivationTestIsScheduled,
    ActivationTestTimeOutOfRange,
    LineHasNoTunnel,
    NotAllowedToOrder,
    OrderIsOpen,
    RouterDoesNotAnswer,
    RouterSendsNoTestFrames,
    WrongActivationTestState,
)
from portal.vll.line_revision import LineRevision, content_of
from portal.vll.line_rules import check_in_service, check_may_order
from portal.vll.models import ActivationTest, Order, Vll
from portal.vll.operations.activation_test_lifecycle import (
    Tested,
    Untested,
    activation_test_announce,
    activation_test_finish,
    activation_tests_call_off,
    interruption_begins,
    untested,
)
from portal.vll.operations.modify_line import vll_lock
from portal.vll.operations.revision_create import revise
from portal.vll.operations.state_compare_and_swap import order_acknowledge
from portal.vll.queries import routers_of
from portal.vll.states import AdminStatus, OrderAction

# A test that takes longer is given up, because the line is more important than its test.
LONGEST_INTERRUPTION = timedelta(seconds=60)
# How far ahead a test may be scheduled, and how late it may begin if another order delays it.
LATEST_SCHEDULE = timedelta(days=90)
LATEST_BEGIN = timedelta(minutes=15)


@transaction.atomic
def activation_test_order(
    *, user: User, vll: Vll, now: datetime, frame: int | None = None, retry_of: Order | None = None
) -> ActivationTest:
    """Test a line in service now. The test interrupts the line.

    ``frame`` is the largest frame to send, in bytes without FCS; None: the largest that the line promises.
    Raises NotAllowedToOrder, OrderIsOpen, WrongLifecycle, LineHasNoTunnel, RouterSendsNoTestFrames,
    RouterDoesNotAnswer, ActivationTestFrameOutOfRange.
    """
    vll = vll_lock(vll, user)
    test = ActivationTest(vll=vll, frame=_frame(vll, frame), requested_by=user.username, created_at=now)
    return _begin(test, vll, retry_of=retry_of, now=now)


@transaction.atomic
def activation_test_schedule(
    *, user: User, vll: Vll, at: datetime, now: datetime, frame: int | None = None
) -> ActivationTest:
    """Schedule a test of the line.

    Some conditions are checked only when the test begins, for example that no other order is open. Raises
    NotAllowedToOrder, WrongLifecycle, LineHasNoTunnel, ActivationTestFrameOutOfRange,
    ActivationTestTimeOutOfRange, ActivationTestIsScheduled.
    """
    vll = Vll.objects.locked().select_related("customer").get(pk=vll.pk)
    check_may_order(user, vll.customer)
    check_in_service(vll)
    why_not = _untested(content_of(vll))
    if why_not is not None and why_not.reason == ActivationTest.Reason.NO_TUNNEL:
        raise LineHasNoTunnel
    if not now <= at <= now + LATEST_SCHEDULE:
        raise ActivationTestTimeOutOfRange(earliest=now, latest=now + LATEST_SCHEDULE)
    if scheduled := vll.activation_tests.filter(state=ActivationTest.State.SCHEDULED).first():
        raise ActivationTestIsScheduled(test=str(scheduled.pk), at=scheduled.scheduled_for)
    test = ActivationTest.objects.create(
        vll=vll,
        state=ActivationTest.State.SCHEDULED,
        frame=_frame(vll, frame),
        requested_by=user.username,
        scheduled_for=at,
        created_at=now,
    )
    activation_test_announce(test, actor=user.username, now=now)
    return test


@transaction.atomic
def activation_test_call_off(*, user: User, test: ActivationTest, now: datetime) -> None:
    """Cancel a scheduled test.

    Raises NotAllowedToOrder and, once the test has begun, WrongActivationTestState.
    """
    vll = Vll.objects.locked().select_related("customer").get(pk=test.vll_id)
    check_may_order(user, vll.customer)
    test = ActivationTest.objects.select_for_update().get(pk=test.pk)
    if test.state != ActivationTest.State.SCHEDULED:
        raise WrongActivationTestState(state=test.state)
    _not_begun(test, ActivationTest.Reason.CALLED_OFF, actor=user.username, now=now)


def scheduled_activation_tests_begin(*, now: datetime) -> None:
    """Begin the scheduled tests that are due (for the sweeper). Each has its own transaction."""
    due = ActivationTest.objects.filter(state=ActivationTest.State.SCHEDULED, scheduled_for__lte=now)
    each_row(
        due.values_list("pk", "vll"),
        lambda row: _begin_scheduled(*row, now),
        what="a scheduled activation test",
    )


def activation_tests_give_up(*, now: datetime) -> None:
    """End tests on demand that take too long, and reconnect the tested lines (for the sweeper)."""
    late = ActivationTest.objects.filter(
        state=ActivationTest.State.WAITING,
        order__action=OrderAction.TEST,
        order__ordered_at__lt=now - LONGEST_INTERRUPTION,
    )
    gave_up = Tested(None, Untested(ActivationTest.Reason.TOOK_TOO_LONG))
    each_row(
        late, lambda test: activation_test_finish(test, gave_up, now=now), what="giving up an activation test"
    )


@transaction.atomic
def _begin_scheduled(pk: UUID, vll_id: UUID, now: datetime) -> None:
    vll = Vll.objects.locked().select_related("customer").get(pk=vll_id)
    test = ActivationTest.objects.select_for_update().get(pk=pk)
    if test.state != ActivationTest.State.SCHEDULED or test.scheduled_for is None:
        return
    user = User.objects.filter(username=test.requested_by).first()
    try:
        with transaction.atomic():
            if user is None:
                raise NotAllowedToOrder(customer=vll.customer.name)
            _begin(test, vll_lock(vll, user), now=now)
    except OrderIsOpen as refusal:
        if now > test.scheduled_for + LATEST_BEGIN:
            _not_begun(test, ActivationTest.Reason.NOT_BEGUN, refusal=refusal, now=now)
    except DomainError as refusal:
        _not_begun(test, ActivationTest.Reason.NOT_BEGUN, refusal=refusal, now=now)


def _begin(test: ActivationTest, vll: Vll, *, now: datetime, retry_of: Order | None = None) -> ActivationTest:
    """Order the test: the routers must disconnect the customer.

    The caller has locked the VLL and checked that it has no open order.
    """
    check_in_service(vll)
    content = content_of(vll)
    _check_testable(content, now)
    order = order_acknowledge(
        vll=vll,
        action=OrderAction.TEST,
        revision=vll.revision + 1,
        actor=test.requested_by,
        now=now,
        before=content.as_json(),
        after=content.as_json(),
        retry_of=retry_of,
    )
    activation_tests_call_off(vll.activation_tests.all(), now=now)
    # The line's largest frame may have become smaller since the test was scheduled.
    test.frame = min(test.frame, content.frame)
    test.interrupted_at = interruption_begins(vll, now)
    revise(vll, replace(content, admin_status=AdminStatus.TESTING), now=now)
    test.state, test.order, test.revision = ActivationTest.State.WAITING, order, vll.revision
    test.admin_status_after = content.admin_status
    test.save()
    return test


def _check_testable(content: LineRevision, now: datetime) -> None:
    """Check that routers can disconnect, test and reconnect the line within seconds."""
    why_not = _untested(content)
    if why_not is not None:
        if why_not.reason == ActivationTest.Reason.NO_TUNNEL:
            raise LineHasNoTunnel
        raise RouterSendsNoTestFrames(routers=", ".join(why_not.routers))
    away = (
        Q(locked_since__isnull=False)
        | Q(frozen_since__isnull=False)
        | Q(convergence__failures__gt=0)
        | Q(observed__reported_at__lt=now - FRESH)
        | Q(observed__vpp_connected=False)
        | Q(observed__vpp_hangs=True)
    )
    if names := sorted(routers_of(content).filter(away).values_list("name", flat=True)):
        raise RouterDoesNotAnswer(routers=", ".join(names))


def _untested(content: LineRevision) -> Untested | None:
    return untested(content, routers_of(content).select_related("observed"))


def _frame(vll: Vll, requested: int | None) -> int:
    if requested is not None and not SIZES[0] <= requested <= vll.frame:
        raise ActivationTestFrameOutOfRange(value=requested, minimum=SIZES[0], maximum=vll.frame)
    return vll.frame if requested is None else requested


def _not_begun(
    test: ActivationTest,
    reason: ActivationTest.Reason,
    *,
    now: datetime,
    actor: str = "",
    refusal: DomainError | None = None,
) -> None:
    """End the test without an order; ``refusal`` is the reason."""
    test.state, test.reason, test.finished_at = ActivationTest.State.NOT_TESTED, reason, now
    if refusal is not None:
        with in_english():
            test.conditions = {"refusal": refusal.sentence}
    test.save()
    activation_test_announce(test, actor=actor, now=now)
