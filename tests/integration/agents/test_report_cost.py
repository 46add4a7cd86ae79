"""The cost of a report depends on its changes, and not on the number of its router's lines."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from threading import BoundedSemaphore
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import User
from portal.events.models import Event
from portal.inventory.models import ObservedRoute, ObservedRouter, Router
from portal.inventory.reported_observation import EndObservation, ListName, RouteReport
from portal.processes import gunicorn_agent_api
from portal.telemetry import observation_ingest, oper_status
from portal.telemetry.models import OperInterval
from portal.telemetry.observation_ingest import observation_take
from portal.telemetry.oper_status import stale_vlls_mark
from portal.vll.models import Vll, VllEnd
from tests.integration.isp import Isp
from tests.integration.observed_reports import observed_end, observed_report
from tests.integration.orders import end, order
from tests.integration.router_answers import activate, answer

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
LINES = 6


@pytest.fixture
def lines(isp: Isp, alice: User) -> list[Vll]:
    vlls = [
        order(isp, alice, cir_bps=1, now=NOW, a_end=end(isp, "rhino:host-cust1", outer=vlan),
              z_end=end(isp, "hippo:host-cust1", outer=vlan)).vll
        for vlan in range(1, LINES + 1)
    ]  # fmt: skip
    for vll in vlls:
        activate(vll)
    return vlls


def ends_of(lines: Sequence[Vll], side: str, **otherwise: Any) -> tuple[EndObservation, ...]:
    """Return the observed ends of the lines. ``otherwise`` are facts of the first."""
    first, *others = lines
    return (
        observed_end(first.pk, side, **otherwise),
        *(observed_end(vll.pk, side) for vll in others),
    )


def take(
    isp: Isp,
    router: str,
    ends: tuple[EndObservation, ...] | ListName,
    *,
    second: int,
    routes: tuple[RouteReport, ...] = (),
    look: int | None = None,
) -> None:
    now = NOW + timedelta(seconds=second)
    sent_ms = int(now.timestamp() * 1000)
    report = observed_report(sent_ms=sent_ms, look=look, routes=routes, ends=ends)
    # The agent API reads the router like this for each report.
    observed_router = Router.objects.select_related("observed").get(pk=isp.routers[router].pk)
    assert observation_take(router=observed_router, report=report, now=now)


def both(isp: Isp, lines: Sequence[Vll], *, second: int, **otherwise: Any) -> None:
    take(isp, "rhino", ends_of(lines, "a", **otherwise), second=second)
    take(isp, "hippo", ends_of(lines, "z"), second=second)


def rows_read(*tables: str) -> int:
    """Return the number of rows of these tables that this transaction has read."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0) FROM pg_stat_xact_user_tables"
            " WHERE relname = ANY(%s)",
            [list(tables)],
        )
        return int(cursor.fetchone()[0])


def by_index(table: str) -> None:
    """Make PostgreSQL use indexes, as in large tables; it would read all rows of a small one.

    The indexes are rebuilt, because rows of rolled-back tests could make an index look larger than its table.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"REINDEX TABLE {table}")
        cursor.execute("SET LOCAL enable_seqscan = off")


def test_report_without_changes_reads_none_of_its_lines(isp: Isp, lines: list[Vll]) -> None:
    for second in (0, 10, 20):
        both(isp, lines, second=second)
    by_index("vll_vllend")
    before = rows_read("vll_vll", "vll_vllend")
    both(isp, lines, second=30)
    assert rows_read("vll_vll", "vll_vllend") == before


def test_repeated_report_takes_one_statement(isp: Isp, lines: list[Vll]) -> None:
    for second in (0, 10, 20):
        both(isp, lines, second=second)
    with CaptureQueriesContext(connection) as captured:
        take(isp, "rhino", ends_of(lines, "a"), second=30)
    assert [each["sql"].split()[0] for each in captured] == ["SELECT", "WITH"]
    observed = ObservedRouter.objects.get(router=isp.routers["rhino"])
    assert observed.reported_at == NOW + timedelta(seconds=30)
    assert observed.sent_ms == int(observed.reported_at.timestamp() * 1000)


def test_outdated_report_does_not_set_the_time_back(isp: Isp, lines: list[Vll]) -> None:
    for second in (0, 10, 20):
        both(isp, lines, second=second)
    with pytest.raises(AssertionError, match="observation_take"):
        take(isp, "rhino", ends_of(lines, "a"), second=15)
    assert ObservedRouter.objects.get(router=isp.routers["rhino"]).reported_at == NOW + timedelta(seconds=20)


def test_repeated_routes_are_not_read_again(isp: Isp) -> None:
    routes = tuple(RouteReport(f"10.255.1.{number}", reachable=True) for number in range(1, 30))
    by_index("inventory_observedroute")
    take(isp, "rhino", (), second=0, routes=routes)
    before = rows_read("inventory_observedroute")
    take(isp, "rhino", (), second=10, routes=routes)
    assert rows_read("inventory_observedroute") == before
    turned = RouteReport(routes[0].address, reachable=False)
    take(isp, "rhino", (), second=20, routes=(turned, *routes[1:]))
    assert ObservedRoute.objects.get(reachable=False).address == "10.255.1.1"


def test_change_of_one_line_is_written_only_to_that_line(isp: Isp, lines: list[Vll]) -> None:
    for second in (0, 10, 20):
        both(isp, lines, second=second)
    both(isp, lines, second=30, link_up=False)
    down = Vll.objects.filter(oper_status="op-down")
    assert [vll.pk for vll in down.all()] == [lines[0].pk]
    both(isp, lines, second=40)
    assert not down.all()


@pytest.mark.parametrize("by_answer", [True, False])
def test_change_by_an_answer_is_compared_with_the_next_equal_report(
    isp: Isp, lines: list[Vll], by_answer: bool
) -> None:
    for second in (0, 10, 20):
        both(isp, lines, second=second)
    if by_answer:
        answer(lines[3], "a", "verified", policed=True, look=None)
    else:
        VllEnd.objects.filter(vll=lines[3], side="a").update(link_up=None)
    both(isp, lines, second=30)
    changed = VllEnd.objects.get(vll=lines[3], side="a")
    assert (changed.policed, changed.link_up) == (False, True)


def test_report_older_than_an_answer_is_compared_later(isp: Isp, lines: list[Vll]) -> None:
    both(isp, lines, second=0)
    VllEnd.objects.filter(vll=lines[0]).update(status_observation=2000, status_at=NOW)
    take(isp, "rhino", ends_of(lines, "a"), second=10, look=2001)
    # The router's clock was set back.
    for second, link_up in ((20, True), (30, True), (40, False)):
        take(isp, "rhino", ends_of(lines, "a", link_up=False), second=second, look=1000 + second)
        assert VllEnd.objects.get(vll=lines[0], side="a").link_up is link_up


def test_new_revision_is_unknown_until_a_report_is_about_it(isp: Isp, lines: list[Vll]) -> None:
    both(isp, lines, second=0)
    both(isp, lines, second=10)
    Vll.objects.filter(pk=lines[2].pk).update(revision=2)
    both(isp, lines, second=20)
    assert Vll.objects.get(pk=lines[2].pk).oper_status == "op-unknown"
    assert Vll.objects.filter(oper_status="op-up").count() == LINES - 1


def test_lines_marked_as_silent_are_up_again_with_the_first_report(isp: Isp, lines: list[Vll]) -> None:
    both(isp, lines, second=0)
    both(isp, lines, second=10)
    assert stale_vlls_mark(now=NOW + timedelta(seconds=100)) == LINES
    both(isp, lines, second=110)
    assert Vll.objects.filter(oper_status="op-up").count() == LINES


def test_lines_of_a_silent_network_are_marked_and_locked_in_batches(
    isp: Isp, lines: list[Vll], monkeypatch: pytest.MonkeyPatch
) -> None:
    both(isp, lines, second=0)
    both(isp, lines, second=10)
    monkeypatch.setattr(oper_status, "_MARKED_TOGETHER", 2)
    with CaptureQueriesContext(connection) as captured:
        assert stale_vlls_mark(now=NOW + timedelta(seconds=100)) == LINES
    locks = [
        each["sql"] for each in captured if 'FROM "vll_vll"' in each["sql"] and "FOR NO KEY" in each["sql"]
    ]
    assert [sql.count("::uuid") for sql in locks] == [2, 2, 2]


@pytest.mark.parametrize("marked", [True, False])
def test_returning_router_costs_as_many_statements_with_many_lines_as_with_one(
    isp: Isp, lines: list[Vll], marked: bool
) -> None:
    """Otherwise a whole network that returns at once would be read slower than it becomes silent again."""

    def statements_of_return(second: int, lines: Sequence[Vll]) -> int:
        both(isp, lines, second=second)
        both(isp, lines, second=second + 10)
        if marked:
            stale_vlls_mark(now=NOW + timedelta(seconds=second + 90))
        with CaptureQueriesContext(connection) as captured:
            both(isp, lines, second=second + 100)
        assert Vll.objects.filter(oper_status="op-up").count() == LINES
        return len(captured)

    all_of_them = statements_of_return(0, lines)
    Vll.objects.exclude(pk=lines[0].pk).update(lifecycle="terminated")
    assert all_of_them == statements_of_return(200, lines[:1])


def row_addresses() -> list[tuple[str]]:
    """Return the physical addresses of the lines' rows. Each write moves a row."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT ctid::text FROM vll_vll ORDER BY id")
        return list(cursor.fetchall())


def marked(isp: Isp, router: str) -> int:
    """Return the number of ends that are compared with the router's next report in any case."""
    return VllEnd.objects.filter(port__router=isp.routers[router], changed_since_report=True).count()


def test_changed_status_of_a_line_is_no_change_for_its_other_router(isp: Isp, lines: list[Vll]) -> None:
    both(isp, lines, second=0)
    both(isp, lines, second=10)
    take(isp, "rhino", ends_of(lines, "a", link_up=False), second=20)
    assert Vll.objects.filter(oper_status="op-down").count() == 1
    assert marked(isp, "hippo") == 0
    # The line is unknown for a while, and up again: both are no change for the routers.
    take(isp, "rhino", ends_of(lines, "a"), second=30)
    take(isp, "hippo", ends_of(lines, "z"), second=100)
    take(isp, "rhino", ends_of(lines, "a"), second=101)
    assert Vll.objects.filter(oper_status="op-up").count() == LINES
    assert (marked(isp, "rhino"), marked(isp, "hippo")) == (0, 0)


def test_late_report_of_a_router_found_silent_is_compared_with_all_lines(isp: Isp, lines: list[Vll]) -> None:
    """By the router's clock the report is not late, and it equals the previous report."""
    both(isp, lines, second=0)
    both(isp, lines, second=10)
    assert stale_vlls_mark(now=NOW + timedelta(seconds=46)) == LINES
    both(isp, lines, second=44)
    assert Vll.objects.filter(oper_status="op-up").count() == LINES


def test_lines_that_were_unknown_for_a_while_return_without_a_write(isp: Isp, lines: list[Vll]) -> None:
    """Events and intervals store the unknown time, so that the ends need not be written."""
    both(isp, lines, second=0)
    both(isp, lines, second=10)
    for second in range(20, 100, 10):
        take(isp, "hippo", ends_of(lines, "z"), second=second)
    before = row_addresses()
    report = observed_report(ends=ends_of(lines, "a"))
    take(isp, "rhino", ListName(report.digests["ends"]), second=100)
    assert row_addresses() == before
    events = Event.objects.filter(vll_id=lines[0].pk, kind__startswith="vll.op-").order_by("-id")[:2]
    assert {event.kind: event.at - NOW for event in events} == {
        "vll.op-unknown": timedelta(seconds=45),
        "vll.op-up": timedelta(seconds=100),
    }
    intervals = OperInterval.objects.filter(vll_id=lines[0].pk).order_by("-id")[:3]
    assert [each.status for each in intervals] == ["op-up", "op-unknown", "op-up"]
    assert [each.ended_at is None for each in intervals] == [True, False, False]
    assert Vll.objects.filter(oper_status="op-up").count() == LINES


def test_returning_routers_leave_threads_to_the_others(
    isp: Isp, lines: list[Vll], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gunicorn_agent_api.threads >= 2 * observation_ingest.RETURNS_AT_ONCE
    both(isp, lines, second=0)
    both(isp, lines, second=10)
    for second in (20, 30, 40):
        take(isp, "hippo", ends_of(lines, "z"), second=second)
    monkeypatch.setattr(observation_ingest, "_RETURNS", BoundedSemaphore(1))
    assert observation_ingest._RETURNS.acquire(
        blocking=False
    )  # as by a router that returns in another thread
    with pytest.raises(observation_ingest.Busy):
        take(isp, "rhino", ends_of(lines, "a"), second=50)
    take(isp, "hippo", ends_of(lines, "z"), second=50)
    observation_ingest._RETURNS.release()
    for second in (60, 150):  # each releases its place
        take(isp, "rhino", ends_of(lines, "a"), second=second)
