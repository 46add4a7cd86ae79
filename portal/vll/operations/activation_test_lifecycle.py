"""The life cycle of an activation test: plan it, carry it out, then hand the line over or undo its order."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery

from portal.celery_tasks import TEST_LINE
from portal.core.background_work import backoff
from portal.core.db.statements import insert
from portal.core.environment import ActivationTestMode
from portal.core.network.encapsulations import Encapsulation
from portal.core.reader_texts import in_english
from portal.events.announcements import announce
from portal.events.task_requests import resend_tasks, send_task
from portal.inventory.models import ObservedRouter, Router
from portal.vll.activation_test_procedure import Findings
from portal.vll.line_revision import LineRevision, content_of, takes_another_way
from portal.vll.models import ActivationTest, Order, Vll, VllEnd
from portal.vll.operations.order_endings import order_undo
from portal.vll.operations.revision_create import revise
from portal.vll.sentences import activation_test_facts, activation_test_sentence
from portal.vll.states import AdminStatus, Lifecycle, OrderAction

# The duration of a worker's claim, longer than a test. After that time another worker takes over.
CLAIM = timedelta(seconds=60)
# The pause after a test that could not be carried out. It doubles after each attempt, up to LONGEST_WAIT.
TRY_AGAIN = timedelta(seconds=2)
LONGEST_WAIT = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Untested:
    """The reason why no frames are sent.

    ``routers``: the names of the routers that cannot send test frames.
    """

    reason: ActivationTest.Reason
    routers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tested:
    """The outcome of a test: ``findings``, or why there are none.

    The other fields are as in ActivationTest.
    """

    findings: Findings | None
    why_not: Untested | None = None
    conditions: Mapping[str, Any] = field(default_factory=dict)
    round_trip_us: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class TestPlan:
    """The plan for a line that must become ``after``.

    The routers build ``first``, and ``after`` only when a test has passed or is not needed. If the line is
    not tested before it is handed over, ``first`` and ``after`` are equal. Otherwise ``first`` does not
    connect the customer.
    """

    first: LineRevision
    after: LineRevision
    needed: bool
    why_not: Untested | None

    def note(self, vll: Vll, order: Order, *, now: datetime) -> None:
        """Record that ``first``, the newest revision, must be tested, or why it is not tested."""
        if not self.needed:
            return
        if vll.revision > 1:
            activation_tests_call_off(ActivationTest.objects.filter(vll=vll), now=now)
        test = ActivationTest(
            vll=vll,
            order=order,
            revision=vll.revision,
            admin_status_after=self.after.admin_status,
            frame=self.after.frame,
            created_at=now,
        )
        if self.why_not is None:
            test.interrupted_at = interruption_begins(vll, now)
        else:
            test.state, test.reason = ActivationTest.State.NOT_TESTED, self.why_not.reason
            test.routers, test.finished_at = list(self.why_not.routers), now
        insert(test)
        if self.why_not is not None:
            activation_test_announce(test, now=now)


def activation_test_plan(
    before: LineRevision | None, after: LineRevision, routers: Iterable[Router]
) -> TestPlan:
    """Return the plan for a line between ``routers`` that changes from ``before`` to ``after``."""
    needed = needs_test(before, after)
    why_not = untested(after, routers) if needed else None
    tested = needed and why_not is None
    first = replace(after, admin_status=AdminStatus.TESTING) if tested else after
    return TestPlan(first, after, needed, why_not)


def activation_test_announce(test: ActivationTest, *, now: datetime, actor: str = "") -> None:
    """Announce a test that is scheduled or has ended."""
    with in_english():
        sentence = activation_test_sentence(test)
    announce(
        f"line_test.{test.state}",
        now=now,
        customer_id=test.vll.customer_id,
        vll_id=test.vll_id,
        order_id=test.order_id,
        actor=actor,
        data={
            "line_test": str(test.pk),
            "code": test.reason,
            "reason": sentence,
            **activation_test_facts(test),
        },
    )


def activation_test_send(vll: Vll) -> None:
    """Send the task for the line's waiting test, now that its routers have the tunnel."""
    test = _waiting(vll)
    if test is not None and test.claimed_until is None and test.failures == 0:
        send_task(TEST_LINE, str(test.pk))


def activation_test_not_possible(vll: Vll, *, now: datetime) -> None:
    """End the line's waiting test, because a router can no longer test. The caller has locked the VLL.

    The line is handed over untested. If its order is only a test, that order fails.
    """
    test = _waiting(vll)
    if test is None:
        return
    joined = vll.ends.filter(status=VllEnd.Status.VERIFIED, status_revision=vll.revision)
    routers = tuple(sorted(joined.values_list("port__router__name", flat=True)))
    _end(test, vll, Tested(None, Untested(ActivationTest.Reason.ROUTER_CANNOT, routers)), now=now)


def activation_test_claim(test_id: UUID, *, now: datetime) -> ActivationTest | None:
    """Claim a waiting test for one worker, and return it.

    Return None if the test has ended, another worker has it, or its pause is not over.
    """
    waiting = ActivationTest.objects.filter(
        _free(now), pk=test_id, state=ActivationTest.State.WAITING, revision=_REVISION_OF_LINE
    )
    if not waiting.update(claimed_until=now + CLAIM, started_at=now):
        return None
    return ActivationTest.objects.select_related("vll").get(pk=test_id)


def activation_test_put_off(test: ActivationTest, *, now: datetime) -> None:
    """Schedule another attempt after a test that could not be carried out."""
    ActivationTest.objects.filter(pk=test.pk, state=ActivationTest.State.WAITING).update(
        claimed_until=None,
        failures=F("failures") + 1,
        retry_at=now + backoff(test.failures, first=TRY_AGAIN, longest=LONGEST_WAIT),
    )


@transaction.atomic
def activation_test_finish(test: ActivationTest, tested: Tested, *, now: datetime) -> None:
    """Store the outcome of a test. Depending on the outcome, hand the line over or undo its order.

    Do nothing if the test has ended already, or if the line has another revision now.
    """
    vll = Vll.objects.locked().get(pk=test.vll_id)
    current = ActivationTest.objects.select_for_update().get(pk=test.pk)
    if current.state == ActivationTest.State.WAITING and current.revision == vll.revision:
        _end(current, vll, tested, now=now)


@transaction.atomic
def activation_tests_resend(*, now: datetime) -> None:
    """Send tasks again for tests whose message or worker was lost, or whose pause is over (for the sweeper).

    First end the tests whose line has another revision, for example because the order was cancelled or given
    up. A message is not sent again while it may still wait for a worker.
    """
    waiting = ActivationTest.objects.filter(state=ActivationTest.State.WAITING)
    activation_tests_call_off(waiting.exclude(revision=_REVISION_OF_LINE), now=now)
    just_created = Q(failures=0, claimed_until__isnull=True, created_at__gt=now - TRY_AGAIN)
    built = Q(vll__ends__status=VllEnd.Status.TESTING, vll__ends__status_revision=F("revision"))
    due = (
        waiting.filter(_free(now))
        .exclude(just_created)
        .annotate(built=Count("vll__ends", filter=built))
        .filter(built=2)
    )
    resend_tasks(TEST_LINE, [(str(test),) for test in due.values_list("pk", flat=True)])


def activation_tests_call_off(tests: QuerySet[ActivationTest], *, now: datetime) -> None:
    """End those of ``tests`` that still wait, because their revision is no longer wanted."""
    tests.filter(state=ActivationTest.State.WAITING).update(
        state=ActivationTest.State.NOT_TESTED, reason=ActivationTest.Reason.CALLED_OFF, finished_at=now
    )


# Not F("vll__revision"): Django moves all conditions of an UPDATE with a join into a subquery. PostgreSQL
# does not check a subquery again after the UPDATE has waited for a lock. Two workers could claim one test.
_REVISION_OF_LINE = Subquery(Vll.objects.filter(pk=OuterRef("vll")).values("revision"))


def _free(now: datetime) -> Q:
    return Q(Q(claimed_until__isnull=True) | Q(claimed_until__lt=now)) & Q(
        Q(retry_at__isnull=True) | Q(retry_at__lte=now)
    )


def _waiting(vll: Vll) -> ActivationTest | None:
    return vll.activation_tests.filter(state=ActivationTest.State.WAITING, revision=vll.revision).first()


def _end(test: ActivationTest, vll: Vll, tested: Tested, *, now: datetime) -> None:
    findings, why_not = tested.findings, tested.why_not
    if findings is not None:
        test.state = ActivationTest.State.PASSED if findings.passed else ActivationTest.State.FAILED
        test.reason = "" if findings.finding is None else findings.finding.value
        test.largest_passed, test.directions = findings.largest_passed, findings.as_json()
    elif why_not is not None:
        test.state, test.reason = ActivationTest.State.NOT_TESTED, why_not.reason
        test.routers = list(why_not.routers)
    test.conditions, test.finished_at = dict(tested.conditions), now
    test.round_trip_us = None if tested.round_trip_us is None else dict(tested.round_trip_us)
    test.claimed_until = None
    test.save()
    activation_test_announce(test, now=now)
    order = vll.orders.get(activation_tests=test)
    if _order_fails(order, test):
        order_undo(order, vll, failure=_failure(test), now=now)
    else:
        _hand_over(order, test, vll, now=now)


def _order_fails(order: Order, test: ActivationTest) -> bool:
    """Return whether the order fails with this outcome. An order for a test needs a passed test."""
    if order.action == OrderAction.TEST:
        return test.state != ActivationTest.State.PASSED
    return (
        test.state == ActivationTest.State.FAILED
        and settings.LONGLINE_LINE_TEST is ActivationTestMode.REQUIRED
    )


def _hand_over(order: Order, test: ActivationTest, vll: Vll, *, now: datetime) -> None:
    """Connect the customer: write the tested content as the next revision, with the ordered admin status."""
    revise(vll, replace(content_of(vll), admin_status=test.admin_status_after), now=now)
    Order.objects.filter(pk=order.pk).update(revision=vll.revision)


def _failure(test: ActivationTest) -> dict[str, Any]:
    with in_english():
        message = activation_test_sentence(test)
    return {
        "code": f"line-test-{test.reason}",
        "message": message,
        **activation_test_facts(test),
        "line_test": str(test.pk),
    }


def needs_test(before: LineRevision | None, after: LineRevision) -> bool:
    """Return whether frames will take another path: the line is new, or its tunnel or its routers change.

    Return False if activation tests are switched off.
    """
    if settings.LONGLINE_LINE_TEST is ActivationTestMode.OFF:
        return False
    return before is None or takes_another_way(before, after)


def untested(content: LineRevision, routers: Iterable[Router]) -> Untested | None:
    """Return why a line with this content cannot be tested between these routers, or None if it can.

    Read the routers with ``select_related("observed")``.
    """
    if content.encapsulation == Encapsulation.L2XC:
        return Untested(ActivationTest.Reason.NO_TUNNEL)
    unable = {router.name for router in routers if not _sends_test_frames(router)}
    return Untested(ActivationTest.Reason.ROUTER_CANNOT, tuple(sorted(unable))) if unable else None


def _sends_test_frames(router: Router) -> bool:
    observed: ObservedRouter | None = getattr(router, "observed", None)
    return observed is not None and observed.line_tests


def interruption_begins(vll: Vll, now: datetime) -> datetime | None:
    """Return when a test begins to interrupt this line; None if the line is not active. A line that is not
    active carries nothing anyway.

    The time of an interruption is an upper bound: the portal starts the clock before it sends the request to
    the routers, and stops the clock after their answers.
    """
    return now if vll.lifecycle == Lifecycle.ACTIVE else None
