import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import User
from portal.alarms.rounds import alarms_watch
from portal.core import clock
from portal.inventory.models import Port
from portal.telemetry.counter_ingest import counters_store
from portal.telemetry.partitioned_tables import partitions_keep
from portal.telemetry.reported_counters import CounterReport, CounterSample, EndCount
from portal.vll.models import Vll
from portal.vll.operations.line_removal import order_delete
from portal.vll.states import OperStatus
from portal.web.overview import attention
from portal.web.page import list_filters
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.router_answers import activate, answer, refuse
from tests.integration.telemetry.test_counter_ingest import BOOT
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


def test_overview_shows_health_ends_and_bandwidth_of_a_line(isp: Isp, alice: User) -> None:
    activate(order(isp, alice, description="Milk run").vll)
    shown = text(signed_in(alice).get("/"))
    row = shown[shown.index("Milk run") :]
    for fact in (
        "rhino:host-cust1 VLAN 100",
        "hippo:host-cust1",
        "1 Gbit/s",
        "Unknown Its routers have not reported on it recently.",
    ):
        assert fact in row
    for fact in ("Active", "Admin up", "As ordered", "Completed"):
        assert fact not in row


def test_open_orders_are_above_the_lines(isp: Isp, alice: User) -> None:
    order(isp, alice, description="Milk run")
    shown = text(signed_in(alice).get("/"))
    assert "Open orders 1" in shown
    assert shown.index("Acknowledged") < shown.index("Setting up")


def test_page_follows_an_order_that_ends_while_its_lines_are_read(
    isp: Isp, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    vll = order(isp, alice, description="Milk run").vll

    def lines_are_read(rows: QuerySet[Vll], *, by: str, after: str) -> list_filters.Page:
        read = list_filters.newest_first(rows, by=by, after=after)
        activate(vll)
        return read

    with monkeypatch.context() as between:
        between.setattr("portal.web.overview.newest_first", lines_are_read)
        early = signed_in(alice).get("/")
    assert "Setting up" in text(early)
    assert "every 2s" in early.content.decode()
    assert "every 2s" not in signed_in(alice).get("/").content.decode()


def test_viewer_sees_lines_and_no_order_link(isp: Isp, alice: User, bob: User) -> None:
    order(isp, alice, description="Milk run")
    answer_to_bob = signed_in(bob).get("/")
    assert "Milk run" in text(answer_to_bob)
    assert "/orders/new/" not in answer_to_bob.content.decode()


def test_stranger_sees_no_foreign_line(isp: Isp, alice: User, charlie: User) -> None:
    order(isp, alice, description="Milk run")
    shown = text(signed_in(charlie).get("/"))
    assert "Milk run" not in shown
    assert "Open orders 0" in shown
    assert "You have no port yet" in shown


def test_noc_sees_every_line_with_its_customer(isp: Isp, alice: User, nora: User) -> None:
    order(isp, alice, description="Milk run")
    shown = text(signed_in(nora).get("/"))
    assert "Milk run Alpine Dairy" in shown


def test_removed_lines_are_shown_only_on_request(isp: Isp, alice: User) -> None:
    vll = order(isp, alice, description="Milk run").vll
    activate(vll)
    order_delete(user=alice, vll=vll, now=clock.now())
    answer(vll, "a", "removed")
    answer(vll, "z", "removed")
    assert "Milk run" not in text(signed_in(alice).get("/"))
    assert "Milk run" in text(signed_in(alice).get("/?show=all"))


def test_older_lines_are_on_the_next_page_without_repetition(
    isp: Isp, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_filters, "PAGE_SIZE", 2)
    started = clock.now()
    for number in range(3):
        vlan = 100 + number
        order(
            isp,
            alice,
            description=f"Line-{number}",
            a_end=end(isp, "rhino:host-cust1", outer=vlan),
            z_end=end(isp, "hippo:host-cust1", outer=vlan),
            cir_bps=10**8,
            now=started + timedelta(seconds=number),
        )
    client = signed_in(alice)
    first = client.get("/")
    older = first.context["page"].after
    second = client.get("/", {"after": older})
    lines = [[row.description for row in page.context["page"].rows] for page in (first, second)]
    assert lines == [["Line-2", "Line-1"], ["Line-0"]]
    assert second.context["page"].after == ""


@pytest.mark.parametrize(
    "edited", ["x", "2026-01-01_y", "2026-01-01T00:00:00_d3f9d3d2-61b6-4c5a-8f53-0d3e6b6a9f10"]
)
def test_edited_cursor_starts_from_the_top(isp: Isp, alice: User, edited: str) -> None:
    order(isp, alice, description="Milk run")
    assert "Milk run" in text(signed_in(alice).get("/", {"after": edited}))


def test_more_lines_take_no_more_queries(isp: Isp, alice: User) -> None:
    client = signed_in(alice)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            client.get("/")
        return len(captured)

    order(isp, alice)
    few = queries()
    for vlan in range(200, 210):
        ends = {
            f"{side}_end": end(isp, f"{r}:host-cust2", outer=vlan)
            for side, r in (("a", "rhino"), ("z", "hippo"))
        }
        order(isp, alice, cir_bps=10**6, **ends)
    assert Vll.objects.count() == 11
    assert queries() == few


def test_problems_of_lines_come_first(isp: Isp, alice: User, charlie: User) -> None:
    vll = order(isp, alice, description="Milk run").vll
    activate(vll)
    assert "Alarms" not in text(signed_in(alice).get("/"))
    Vll.objects.filter(pk=vll.pk).update(oper_status=OperStatus.DOWN)
    shown = text(signed_in(alice).get("/"))
    assert "Alarms Down Milk run" in shown
    assert "Milk run" not in text(signed_in(charlie).get("/"))


@pytest.mark.parametrize("status", OperStatus.values)
def test_configuration_drift_comes_first_with_every_status_of_the_line(
    isp: Isp, alice: User, status: str
) -> None:
    vll = order(isp, alice, description="Milk run").vll
    activate(vll)
    Vll.objects.filter(pk=vll.pk).update(oper_status=status, in_sync=False)
    assert "Configuration drift Milk run" in text(signed_in(alice).get("/"))


def test_failed_order_is_an_alarm_for_a_day_or_until_it_is_retried(isp: Isp, alice: User) -> None:
    placed = order(isp, alice, description="Milk run")
    refuse(placed.vll, "a")
    answer(placed.vll, "z", "removed")
    answer(placed.vll, "a", "removed")
    assert "Order failed in the last day Milk run" in text(signed_in(alice).get("/"))
    (worry,) = attention(alice, down=False, out_of_sync=False, now=clock.now())
    assert worry["vlls"] == [placed.vll]
    in_two_days = clock.now() + timedelta(days=2)
    assert attention(alice, down=False, out_of_sync=False, now=in_two_days) == []


def test_line_shows_its_current_rate_in_both_directions(isp: Isp, alice: User) -> None:
    vll = order(isp, alice, description="Milk run").vll
    activate(vll)
    now = clock.now()
    partitions_keep(now=now)
    for side, router, into in (("a", "rhino", 12_500_000), ("z", "hippo", 1_250_000)):
        start_ms = int(now.timestamp() * 1000) - 30_000
        sample = CounterSample(1, start_ms, start_ms + 10_000, (EndCount(str(vll.pk), side, into, 3, 5, 7),))
        report = CounterReport(str(BOOT), int(now.timestamp() * 1000), False, 0, (sample,))
        counters_store(router=isp.routers[router], report=report, now=now)
    answered = signed_in(alice).get("/")
    assert "A to Z 10 Mbit/s Z to A 1 Mbit/s" in text(answered)
    drawn = re.findall(r'<path class="ll-spark-(in|out)" d="(M[^"]+)"', answered.content.decode())
    assert [direction for direction, _path in drawn] == ["in", "out"]


def test_more_lines_with_one_problem_are_counted_and_linked(isp: Isp, alice: User) -> None:
    for vlan in range(100, 107):
        ends = {
            "a_end": end(isp, "rhino:host-cust1", outer=vlan),
            "z_end": end(isp, "hippo:host-cust1", outer=vlan),
        }
        activate(order(isp, alice, description=f"Milk {vlan}", cir_bps=1000, **ends).vll)
    Vll.objects.exclude(description="Milk 106").update(oper_status=OperStatus.DOWN)
    page = signed_in(alice).get("/")
    assert "and 1 other" in text(page)
    assert 'href="/?trouble=down#lines"' in page.content.decode()
    listed = text(signed_in(alice).get("/?trouble=down"))
    rows = listed[listed.index("Lines · Down") :]
    assert sum(f"Milk {vlan}" in rows for vlan in range(100, 106)) == 6
    assert "Milk 106" not in rows
    assert "No line has this trouble now" in text(signed_in(alice).get("/?trouble=drift"))
    assert "Lines · " not in text(signed_in(alice).get("/?trouble=garbage"))


def test_noc_without_ports_is_not_sent_to_the_noc(isp: Isp, nora: User) -> None:
    Port.objects.all().delete()
    shown = text(signed_in(nora).get("/"))
    assert "Add routers and links under Inventory" in shown
    assert "Ask the NOC" not in shown


def test_customer_without_ports_sees_the_next_step_and_no_order_link(isp: Isp, alice: User) -> None:
    assert "Order a line" in main_of(signed_in(alice).get("/"))
    Port.objects.all().update(customer=None)
    page = signed_in(alice).get("/")
    assert "You have no port yet" in text(page)
    assert "Ask the NOC to connect your sites" in text(page)
    assert "Order a line" not in main_of(page)


def main_of(page: Any) -> str:
    """Return the page's content without its navigation."""
    shown: str = page.content.decode()
    return shown[shown.index("<main") :]


def test_overview_and_wall_display_count_the_same_lines_in_service(isp: Isp, alice: User, nora: User) -> None:
    for vlan, lifecycle in ((100, "active"), (101, "suspended"), (102, None)):
        ends = {
            "a_end": end(isp, "rhino:host-cust1", outer=vlan),
            "z_end": end(isp, "hippo:host-cust1", outer=vlan),
        }
        line = order(isp, alice, cir_bps=1000, **ends).vll
        if lifecycle:
            activate(line)
            Vll.objects.filter(pk=line.pk).update(lifecycle=lifecycle)
    alarms_watch(now=clock.now())
    assert "In service 1" in text(signed_in(nora).get("/"))
    wall = text(signed_in(nora).get("/noc/wall/"))
    assert "In service 1" in wall
    assert "Suspended: 1" in wall


@pytest.mark.parametrize(
    ("facts", "of_it"),
    [
        ({"oper_status": "op-up"}, "Up 1 Degraded 0 Down 0 In service 1"),
        ({"oper_status": "op-up", "in_sync": False}, "Up 0 Degraded 1 Down 0 In service 1"),
        ({"oper_status": "op-down"}, "Up 0 Degraded 0 Down 1 In service 1"),
        ({"oper_status": "op-unknown"}, "Up 0 Degraded 0 Down 0 Unknown 1 In service 1"),
    ],
)
def test_overview_and_wall_display_count_the_same_lines_as_up(
    isp: Isp, alice: User, nora: User, facts: dict[str, Any], of_it: str
) -> None:
    activate(order(isp, alice).vll)
    suspended = {
        "a_end": end(isp, "rhino:host-cust1", outer=101),
        "z_end": end(isp, "hippo:host-cust1", outer=101),
    }
    other = order(isp, alice, **suspended).vll
    activate(other)
    Vll.objects.update(oper_status="op-up")
    Vll.objects.exclude(pk=other.pk).update(**facts)
    Vll.objects.filter(pk=other.pk).update(lifecycle="suspended")
    alarms_watch(now=clock.now())
    assert of_it in text(signed_in(nora).get("/noc/wall/"))
    up = int(facts == {"oper_status": "op-up"})
    assert f"In service 1 Up {up} of 1" in text(signed_in(nora).get("/"))
