"""The CSV export of VLLs: complete, row by row, within the reader's scope."""

import csv
import gc
import io
from datetime import UTC, datetime, timedelta
from math import ceil
from threading import Thread
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import Customer, Membership, User
from portal.api.rest import csv_response
from portal.api.rest.csv_response import limited, owners_of
from portal.api.rest.lists import NewestVllFirst, parts_of
from portal.core import clock
from portal.telemetry.models import OperInterval
from portal.vll.models import Vll
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
CSV = "/api/v1/vlls.csv"
MONTH_CSV = "/api/v1/months.csv"
OCTOBER = datetime(2026, 10, 1, tzinfo=UTC)
NOVEMBER = datetime(2026, 11, 3, 5, tzinfo=UTC)


@pytest.fixture
def lines(isp: Isp, alice: User) -> list[Vll]:
    """Return five lines, the oldest first; the first is active and goes from two tags to any VLAN."""
    two_tags = end(isp, "rhino:host-cust1", "qinq", outer=7, inner_vlan=8)
    first = order(isp, alice, a_end=two_tags, cir_bps=1000, description="=1+1").vll
    activate(first)
    more = [
        order(
            isp,
            alice,
            a_end=end(isp, "rhino:host-cust1", outer=vlan),
            z_end=end(isp, "hippo:host-cust1", outer=vlan),
            cir_bps=1000,
            description=f"line {vlan}",
        ).vll
        for vlan in range(201, 205)
    ]
    return [first, *more]


def rows(user: User, query: str = "") -> list[dict[str, str]]:
    answer: Any = client(user).get(f"{CSV}{query}", headers={"Accept": "text/csv"})
    assert (answer.status_code, answer.streaming) == (200, True)
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"] == 'attachment; filename="vlls.csv"'
    return list(csv.DictReader(io.StringIO(b"".join(answer).decode())))


def test_export_has_a_row_per_line_newest_first(lines: list[Vll], alice: User) -> None:
    found = rows(alice)
    assert [row["id"] for row in found] == [str(vll.pk) for vll in reversed(lines)]
    oldest = found[-1]
    assert (oldest["customer"], oldest["lifecycle"], oldest["in_sync"]) == ("Alpine Dairy", "active", "True")
    assert (oldest["a_port"], oldest["a_tagging"], oldest["a_outer_vlan"], oldest["a_inner_vlan"]) == (
        "rhino:host-cust1",
        "qinq",
        "7",
        "8",
    )
    assert (oldest["z_outer_vlan"], oldest["z_inner_vlan"], oldest["cir_bps"]) == ("100", "", "1000")
    assert oldest["description"] == "'=1+1"
    assert (oldest["health"], oldest["health_cause"]) == (
        "unknown",
        "Its routers have not reported on it recently.",
    )
    assert {row["health"] for row in found[:-1]} == {"setting_up"}


def test_list_filters_apply_to_the_export(lines: list[Vll], alice: User) -> None:
    assert [row["description"] for row in rows(alice, "?q=line+20")] == [
        f"line {n}" for n in (204, 203, 202, 201)
    ]
    assert [row["id"] for row in rows(alice, "?lifecycle=active")] == [str(lines[0].pk)]


@pytest.mark.parametrize("query", ["?limit=1", "?cursor=x", "?frob=1", "?vlan=4095"])
def test_unknown_filter_is_refused_as_a_problem(lines: list[Vll], alice: User, query: str) -> None:
    answer = client(alice).get(f"{CSV}{query}", headers={"Accept": "text/csv"})
    assert (answer.status_code, answer["Content-Type"]) == (422, "application/problem+json")


def test_customers_export_their_lines_and_the_noc_all_lines(
    lines: list[Vll], bob: User, charlie: User, nora: User, bakery: Customer
) -> None:
    assert [len(rows(user)) for user in (bob, charlie, nora)] == [5, 0, 5]
    assert rows(nora, "?customer=Basel+Bakery") == []


@pytest.mark.parametrize("at_a_time", [1, 2, 4, 5, 6])
def test_export_in_parts_omits_and_repeats_nothing(lines: list[Vll], at_a_time: int) -> None:
    # All lines have the same time; the order within it is by id.
    Vll.objects.update(created_at=clock.now())
    with CaptureQueriesContext(connection) as sent:
        parts = parts_of(Vll.objects.all(), NewestVllFirst.ordering, at_a_time=at_a_time)
        found = [vll.pk for part in parts for vll in part]
    assert found == sorted((vll.pk for vll in lines), reverse=True)
    assert len(sent) == ceil(5 / at_a_time)


def begun(user: User) -> Any:
    """Begin an export without reading it."""
    answer: Any = client(user).get(CSV, headers={"Accept": "text/csv"})
    assert answer.status_code == 200
    return answer


def assert_refused(user: User) -> None:
    answer = client(user).get(CSV, headers={"Accept": "text/csv"})
    assert (answer.status_code, answer["Content-Type"]) == (429, "application/problem+json")
    assert answer["Retry-After"] == "10"
    assert answer.json()["type"] == "http://testserver/api/docs/errors/#export-running"
    assert "Try again in 10 seconds" in answer.json()["detail"]


def test_each_customer_has_one_export_at_a_time(
    lines: list[Vll], alice: User, nora: User, charlie: User
) -> None:
    first = begun(alice)
    assert_refused(alice)
    assert client(alice).get("/api/v1/vlls").status_code == 200
    second = begun(nora)
    # Exports occupy half of the process's threads.
    for user in (alice, nora, charlie):
        assert_refused(user)
    assert b"".join(first).count(b"\r\n") == 6
    assert_refused(nora)
    assert rows(charlie) == []
    assert b"".join(second).count(b"\r\n") == 6
    assert len(rows(nora)) == 5


def test_colleagues_share_their_customers_export(
    lines: list[Vll], alice: User, dairy: Customer, charlie: User
) -> None:
    Membership.objects.create(user=charlie, customer=dairy, role="viewer")
    first = begun(alice)
    assert_refused(charlie)
    assert b"".join(first).count(b"\r\n") == 6
    assert len(rows(charlie)) == 5


# Closing a response also closes the database connection.
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("lines_read", [0, 1, 3])
def test_abandoned_export_frees_its_slot(lines: list[Vll], alice: User, lines_read: int) -> None:
    first = begun(alice)
    for _ in range(lines_read):
        next(first.streaming_content)
    assert_refused(alice)
    first.close()
    first.close()
    again = begun(alice)
    assert_refused(alice)
    again.close()


@pytest.mark.django_db(transaction=True)
def test_failed_export_frees_its_slot(lines: list[Vll], alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("portal.api.v1.lines.lines._end_cells", lambda _: 1 / 0)
        first = begun(alice)
        with pytest.raises(ZeroDivisionError):
            list(first)
        first.close()
    assert len(rows(alice)) == 5


def test_export_that_nobody_closes_expires(lines: list[Vll], alice: User) -> None:
    begun(alice)
    gc.collect()
    assert len(rows(alice)) == 5


def test_export_collected_during_another_begin_causes_no_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    class Collecting(list[frozenset[str]]):
        """A list that runs the garbage collector, as any allocation may."""

        def __len__(self) -> int:
            gc.collect()
            return super().__len__()

    monkeypatch.setattr(csv_response, "_under_way", Collecting())
    ring: list[Any] = [limited(iter(["a"]), owners={"customer 1"})]
    ring.append(ring)
    del ring
    begun: list[Any] = []
    # In a thread, so that a deadlock fails the test and does not block the whole run.
    begin = Thread(target=lambda: begun.append(limited(iter(["b"]), owners={"customer 2"})), daemon=True)
    begin.start()
    begin.join(10)
    assert len(begun) == 1


def test_complete_export_frees_its_slot_without_being_closed(lines: list[Vll], alice: User) -> None:
    first = limited(iter(["a", "b"]), owners=owners_of(alice))
    assert_refused(alice)
    assert list(first) == ["a", "b"]
    assert len(rows(alice)) == 5


def test_refused_filter_uses_no_slot(lines: list[Vll], alice: User) -> None:
    assert client(alice).get(f"{CSV}?frob=1", headers={"Accept": "text/csv"}).status_code == 422
    assert len(rows(alice)) == 5


def test_overview_links_to_the_export(lines: list[Vll], alice: User, charlie: User) -> None:
    assert f'href="{CSV}"' in signed_in(alice).get("/").content.decode()
    assert "as CSV" not in text(signed_in(charlie).get("/"))


def month_rows(user: User, query: str) -> list[dict[str, str]]:
    """Return the rows of a month, by default of October."""
    answer: Any = client(user).get(f"{MONTH_CSV}{query}", headers={"Accept": "text/csv"})
    assert (answer.status_code, answer.streaming) == (200, True)
    month = query[7:14] or "2026-10"
    assert answer["Content-Disposition"] == f'attachment; filename="lines-{month}.csv"'
    return list(csv.DictReader(io.StringIO(b"".join(answer).decode())))


@pytest.fixture
def in_october(lines: list[Vll], monkeypatch: pytest.MonkeyPatch) -> list[Vll]:
    """Put the first two lines into October: one down for a day, the other up from the month's last hour."""
    monkeypatch.setattr(clock, "now", lambda: NOVEMBER)
    Vll.objects.update(created_at=OCTOBER - timedelta(days=9))
    OperInterval.objects.all().delete()
    down, late, before, after, _ = lines
    for vll, status, began, ended in [
        (down, "op-up", OCTOBER - timedelta(days=9), OCTOBER + timedelta(days=1)),
        (down, "op-down", OCTOBER + timedelta(days=1), OCTOBER + timedelta(days=2)),
        (down, "op-up", OCTOBER + timedelta(days=2), None),
        (late, "op-up", OCTOBER + timedelta(days=31, hours=-1), None),
        (before, "op-up", OCTOBER - timedelta(days=9), OCTOBER),
        (after, "op-up", OCTOBER + timedelta(days=31), None),
    ]:
        OperInterval.objects.create(vll_id=vll.pk, status=status, began_at=began, ended_at=ended)
    return [down, late]


def test_month_export_has_a_row_per_line_in_service(
    in_october: list[Vll], alice: User, charlie: User
) -> None:
    found = {row["vll"]: row for row in month_rows(alice, "?month=2026-10")}
    down, late = (found.pop(str(vll.pk)) for vll in in_october)
    assert not found
    assert (down["month"], down["customer"], down["description"]) == ("2026-10", "Alpine Dairy", "'=1+1")
    assert (down["down_s"], down["up_s"]) == ("86400.0", str(30 * 86400.0))
    assert float(down["availability"]) == pytest.approx(30 / 31)
    assert (late["down_s"], late["up_s"], late["compared"]) == ("0.0", "3600.0", "0")
    assert month_rows(charlie, "?month=2026-10") == []
    assert len(month_rows(alice, "")) == 2


def test_month_export_matches_the_lines_own_months(in_october: list[Vll], alice: User) -> None:
    for vll in in_october:
        (row,) = [row for row in month_rows(alice, "?month=2026-10") if row["vll"] == str(vll.pk)]
        answer: Any = client(alice).get(f"/api/v1/vlls/{vll.pk}/months.csv")
        assert row in list(csv.DictReader(io.StringIO(b"".join(answer).decode())))


def test_running_month_counts_up_to_now(in_october: list[Vll], alice: User) -> None:
    found = month_rows(alice, "?month=2026-11")
    assert {row["up_s"] for row in found} == {str((NOVEMBER - OCTOBER).total_seconds() - 31 * 86400)}
    assert len(found) == 3


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("?month=2026-13", "Write a month as in 2026-10."),
        ("?month=10-2026", "Write a month as in 2026-10."),
        ("?month=2026-12", "That month has not begun."),
        ("?month=2026-10&frob=1", "There is no such filter here."),
    ],
)
def test_invalid_month_is_refused(in_october: list[Vll], alice: User, query: str, why: str) -> None:
    answer = client(alice).get(f"{MONTH_CSV}{query}", headers={"Accept": "text/csv"})
    assert (answer.status_code, answer["Content-Type"]) == (422, "application/problem+json")
    assert why in str(answer.json()["errors"])


def test_pages_link_to_the_month_exports(in_october: list[Vll], alice: User, nora: User) -> None:
    page = signed_in(alice).get("/")
    assert f'href="{MONTH_CSV}?month=2026-10"' in page.content.decode()
    assert "Figures of October 2026 as CSV" in text(page)
    lines_page = signed_in(nora).get(f"/noc/customers/{in_october[0].customer_id}/lines/").content.decode()
    assert f'href="{MONTH_CSV}?month=2026-10&amp;customer=Alpine%20Dairy"' in lines_page
    assert len(month_rows(nora, "?month=2026-10&customer=Alpine+Dairy")) == 2
