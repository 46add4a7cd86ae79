"""The figures on a line's page: graphs from an hour to a year, 95th percentile, CSV, and months."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from playwright.sync_api import expect

from portal.accounts.models import User
from portal.core import clock
from portal.telemetry.partitioned_tables import partitions_keep
from portal.telemetry.round_trips import RoundTripTimes, round_trips_store
from portal.vll.models import TunnelPath, Vll
from portal.vll.operations.paths import tunnel_paths_keep
from tests.browser.reader import Reader
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate


@pytest.fixture
def vll(transactional_db: None, isp: Isp, alice: User) -> Vll:
    """Return a line of more than a year with counters for three hours of today and the last five days."""
    now = clock.now()
    partitions_keep(now=now)
    made = order(isp, alice, description="Milk run").vll
    activate(made)
    began = now - timedelta(days=400)
    Vll.objects.filter(pk=made.pk).update(created_at=began, in_sync_since=began)
    with transaction.atomic(), connection.cursor() as cursor:
        # Completed orders cannot be changed.
        cursor.execute("SET LOCAL session_replication_role = replica")
        made.orders.update(state_at=began)
    for minutes in range(10, 190, 5):
        _count(made, "five_minutes", now - timedelta(minutes=minutes), 300)
    for days in range(1, 6):
        _count(made, "day", now - timedelta(days=days), 86400)
    return made


def _count(vll: Vll, table: str, at: datetime, step_s: int) -> None:
    start = datetime.fromtimestamp(at.timestamp() // step_s * step_s, tz=at.tzinfo)
    size, covered = 1_000_000 * step_s, step_s * 1000
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO telemetry_{table} (vll_id, start_at, a_in_bytes, a_out_bytes, z_in_bytes,"  # noqa: S608
            " z_out_bytes, a_in_packets, a_out_packets, z_in_packets, z_out_packets, a_covered_ms,"
            " z_covered_ms, simulated) VALUES (%s, %s, %s, %s, %s, %s, 1, 1, 1, 1, %s, %s, false)",
            [vll.pk, start, size, size // 2, size // 2, size, covered, covered],
        )


def test_a_reader_views_a_year_and_downloads_it(
    live_server: Any, vll: Vll, reader: Callable[..., Reader]
) -> None:
    alice = reader(live_server.url)
    alice.be_signed_in("alice")
    alice.open(f"/vlls/{vll.pk}/")
    page = alice.page
    figures = page.locator("#throughput")
    p95 = figures.get_by_text("95th percentile, larger direction").first
    page.get_by_role("button", name="Day", exact=True).click()
    expect(figures).to_have_attribute("data-points", "72")
    expect(p95).to_be_visible()
    figures.get_by_text("Current, average, maximum").click()
    highest = figures.get_by_role("row", name="A end, in").get_by_role("cell").last
    expect(highest).to_have_text("8.00 Mbit/s (1 %)")

    page.get_by_role("button", name="Year").click()
    expect(figures).to_have_attribute("data-points", "10")
    # The portal does not keep a year of 5-minute values, so no percentile is drawn.
    expect(p95).to_be_hidden()
    link = figures.get_by_role("link", name="These figures as CSV")
    assert "step=86400" in (link.get_attribute("href") or "")
    with page.expect_download() as download:
        link.click()
    lines = download.value.path().read_text().splitlines()
    assert len([line for line in lines if "8000000" in line]) == 5

    page.get_by_role("button", name="Month").click()
    expect(link).to_have_attribute("href", re.compile("step=3600"))
    page.get_by_role("heading", name="Month by month").click()
    expect(page.get_by_role("heading", name="Availability and frame loss by month")).to_be_visible()
    assert alice.complaints == []


def test_old_figures_are_not_shown_as_current(
    live_server: Any, vll: Vll, reader: Callable[..., Reader]
) -> None:
    alice = reader(live_server.url)
    alice.be_signed_in("alice")
    alice.open(f"/vlls/{vll.pk}/")
    alice.page.get_by_role("button", name="Day", exact=True).click()
    now = alice.page.locator('[data-rate="a_end in"]')
    expect(now).to_have_text("8.00 Mbit/s (1 %)")
    alice.page.get_by_role("button", name="Week", exact=True).click()
    expect(now).to_be_hidden()
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM telemetry_five_minutes WHERE start_at > %s", [clock.now() - timedelta(minutes=40)]
        )
    alice.page.get_by_role("button", name="Day", exact=True).click()
    expect(now).to_have_text("–")
    assert alice.complaints == []


def test_a_young_line_fills_a_years_graph_and_the_pointer_shows_its_values(
    live_server: Any, vll: Vll, reader: Callable[..., Reader]
) -> None:
    Vll.objects.filter(pk=vll.pk).update(created_at=clock.now() - timedelta(hours=4))
    alice = reader(live_server.url, viewport={"width": 1280, "height": 1200})
    alice.be_signed_in("alice")
    alice.open(f"/vlls/{vll.pk}/")
    page = alice.page
    figures = page.locator("#throughput")
    page.get_by_role("button", name="Year").click()
    expect(figures).to_have_attribute("data-points", "72")
    link = figures.get_by_role("link", name="These figures as CSV")
    assert "step=300" in (link.get_attribute("href") or "")

    plot = figures.locator('[data-chart="a_end"] .u-over')
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    # An hour ago. The other end's graph shows the same time.
    page.mouse.move(box["x"] + box["width"] * 3 / 4, box["y"] + 50)
    hover = figures.locator("[data-hover]")
    expect(hover.first).to_contain_text("in 8.00 Mbit/s · out 4.00 Mbit/s")
    expect(hover.last).to_contain_text("in 4.00 Mbit/s · out 8.00 Mbit/s")
    assert alice.complaints == []


def test_a_reader_zooms_in_changes_the_unit_and_returns(
    live_server: Any, vll: Vll, reader: Callable[..., Reader]
) -> None:
    alice = reader(live_server.url, viewport={"width": 1280, "height": 1200}, timezone_id="UTC")
    alice.be_signed_in("alice")
    alice.open(f"/vlls/{vll.pk}/")
    page = alice.page
    figures = page.locator("#throughput")
    link = figures.get_by_role("link", name="These figures as CSV")
    page.get_by_role("button", name="Day", exact=True).click()
    expect(figures).to_have_attribute("data-points", "72")

    plot = figures.locator('[data-chart="a_end"] .u-over')
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    # The last hour and a half of the day.
    page.mouse.move(box["x"] + box["width"] * (1 - 1.5 / 24), box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 60, steps=5)
    page.mouse.up()
    reset = figures.get_by_role("button", name="Reset zoom")
    expect(reset).to_be_visible()
    expect(figures.locator('[data-range][aria-pressed="true"]')).to_have_count(0)
    expect(link).to_have_attribute("href", re.compile(r"to=\d+&unit=bits$"))
    shown = re.search(r"from=(\d+)&to=(\d+)", link.get_attribute("href") or "")
    assert shown is not None
    assert 4000 < int(shown[2]) - int(shown[1]) < 7000
    reset.click()
    expect(figures).to_have_attribute("data-points", "72")
    expect(reset).to_be_hidden()
    expect(figures.get_by_label("From (UTC)", exact=True)).to_have_value("")

    figures.get_by_text("Packets, and other periods").click()
    page.get_by_role("button", name="packet/s").click()
    figures.get_by_text("Current, average, maximum").click()
    expect(figures.get_by_role("row", name="A end, in").get_by_role("cell").first).to_contain_text("packet/s")
    expect(link).to_have_attribute("href", re.compile("unit=packets"))

    now = clock.now()
    page.get_by_label("From (UTC)", exact=True).fill(f"{now - timedelta(days=3):%Y-%m-%dT%H:%M}")
    page.get_by_label("To (UTC)", exact=True).fill(f"{now - timedelta(days=4):%Y-%m-%dT%H:%M}")
    figures.get_by_role("button", name="Show").click()
    assert page.get_by_label("To (UTC)", exact=True).evaluate("field => field.validationMessage") != ""
    page.get_by_label("To (UTC)", exact=True).fill(f"{now:%Y-%m-%dT%H:%M}")
    figures.get_by_role("button", name="Show").click()
    expect(reset).to_be_visible()
    assert alice.accessibility_violations() == []
    assert alice.complaints == []


def test_latency_and_throughput_cover_the_same_time(
    live_server: Any, vll: Vll, reader: Callable[..., Reader]
) -> None:
    now = clock.now()
    tunnel_paths_keep(now=now)
    path = TunnelPath.objects.get()
    for minutes, lost in ((10, 0), (20, 2), (300, 0)):
        times = RoundTripTimes(5, 5 - lost, 700, 800 + minutes, 1500)
        due = now - timedelta(minutes=minutes)
        round_trips_store(path=path.pk, times=times, due=due, now=due)
    alice = reader(live_server.url)
    alice.be_signed_in("alice")
    alice.open(f"/vlls/{vll.pk}/")
    page = alice.page
    latency = page.locator("#latency")
    latency.get_by_role("heading", name="Latency").click()
    expect(latency).to_have_attribute("data-points", "2")
    expect(latency.locator('[data-figure="current"]')).to_have_text("810 µs")
    expect(latency.locator('[data-figure="longest"]')).to_have_text("1.50 ms")
    expect(latency.get_by_text("2 packets did not come back.")).to_be_visible()
    page.get_by_role("button", name="Day", exact=True).click()
    expect(latency).to_have_attribute("data-points", "3")
    assert alice.accessibility_violations() == []
    assert alice.complaints == []
