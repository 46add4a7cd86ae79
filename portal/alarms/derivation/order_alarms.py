"""Alarms about orders that need an operator, failed tests, and unconfirmed removals."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from portal.alarms.affected_lines import of_lines
from portal.alarms.kinds import AlarmCondition, Kind
from portal.core.stored_text import in_english
from portal.vll import queries
from portal.vll.models import ActivationTest, Order, Vll
from portal.vll.sentences import activation_test_facts, activation_test_sentence
from portal.vll.states import TERMINAL_LIFECYCLES, TERMINAL_ORDER_STATES, OrderState

# A failed test causes an alarm until a later test between the same routers passes, at most for this time.
FAILED_TESTS_FOR = timedelta(days=7)


def orders(now: datetime) -> Iterator[AlarmCondition]:
    every = Order.objects.select_related("vll__customer", "customer")
    overdue = every.exclude(state__in=TERMINAL_ORDER_STATES).filter(alarmed_at__isnull=False)
    for order in overdue.order_by("ordered_at"):
        yield _order(order, Kind.ORDER_OVERDUE, since=order.ordered_at)
    for order in queries.recently_failed(every, now=now).order_by("state_at"):
        yield _order(order, Kind.ORDER_FAILED, since=order.state_at)
    for order in every.filter(state=OrderState.PENDING_APPROVAL).order_by("ordered_at"):
        yield _order(order, Kind.ORDER_PENDING_APPROVAL, since=order.ordered_at)


def unconfirmed(now: datetime) -> Iterator[AlarmCondition]:
    """Yield lines whose order was ended by force before the routers confirmed. Their resources
    stay reserved.
    """
    under_way = Order.objects.filter(vll=OuterRef("pk")).exclude(state__in=TERMINAL_ORDER_STATES)
    left = Vll.objects.filter(~Exists(under_way), wanted_present=False)
    left = left.exclude(lifecycle__in=TERMINAL_LIFECYCLES)
    for line in left.select_related("customer").order_by("created_at"):
        facts = {"customer": str(line.customer)}
        yield AlarmCondition(kind=Kind.UNCONFIRMED, object=f"line:{line.pk}", name=str(line), facts=facts)


def failed_tests(now: datetime) -> Iterator[AlarmCondition]:
    """Yield the newest failed test of each pair of routers. The direction does not matter."""
    newest: dict[tuple[str, ...], ActivationTest] = {}
    for test in _failed_tests(now).order_by("finished_at"):
        newest[tuple(sorted(test.conditions["routers"][side]["router"] for side in "az"))] = test
    for pair, test in newest.items():
        with in_english():
            sentence = activation_test_sentence(test)
        yield AlarmCondition(
            kind=Kind.TEST_FAILED,
            object="routers:" + ":".join(pair),
            name=" – ".join(test.conditions["routers"][side]["router"] for side in "az"),
            since=test.finished_at,
            facts={
                **activation_test_facts(test),
                "code": f"line-test-{test.reason}",
                "sentence": sentence,
                "line": str(test.vll_id),
                "test": str(test.pk),
            },
        )


def _failed_tests(now: datetime) -> QuerySet[ActivationTest]:
    """Return the failed tests that no later passed test makes obsolete. The later test must be between the
    same routers, with frames at least as large.
    """
    a, z = "conditions__routers__a__router", "conditions__routers__z__router"
    passed = ActivationTest.objects.filter(
        Q(**{a: OuterRef(a), z: OuterRef(z)}) | Q(**{a: OuterRef(z), z: OuterRef(a)}),
        state=ActivationTest.State.PASSED,
        finished_at__gt=OuterRef("finished_at"),
        frame__gte=OuterRef("frame"),
    )
    failed = ActivationTest.objects.filter(
        state=ActivationTest.State.FAILED, finished_at__gte=now - FAILED_TESTS_FOR
    )
    return failed.filter(~Exists(passed))


def _order(order: Order, kind: Kind, *, since: datetime) -> AlarmCondition:
    facts = {"customer": str(order.customer), "action": order.action, "state": order.state}
    return AlarmCondition(
        kind=kind,
        object=f"order:{order.pk}",
        name=str(order.vll),
        since=since,
        facts=facts | {"line": str(order.vll_id)},
        affected=of_lines([order.vll]),
    )
