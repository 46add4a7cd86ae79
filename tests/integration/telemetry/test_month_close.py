"""The monthly figures of a line: measured values are numbers, and all others are "not measured"."""

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import User
from portal.core import clock
from portal.telemetry.models import MonthlyPercentile, OperInterval
from portal.telemetry.monthly_figures import months_of
from portal.telemetry.partitioned_tables import partitions_keep
from portal.vll.models import Vll
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
MADE = datetime(2026, 9, 10, tzinfo=UTC)


@pytest.fixture
def vll(isp: Isp, alice: User, monkeypatch: pytest.MonkeyPatch) -> Vll:
    """Return a line that exists since September. Its only intervals are those that a test writes."""
    for now in (MADE + timedelta(days=30), NOW):
        partitions_keep(now=now)
    found = order(isp, alice, description="=Milk run").vll
    activate(found)
    Vll.objects.filter(pk=found.pk).update(created_at=MADE)
    found.refresh_from_db()
    OperInterval.objects.all().delete()
    monkeypatch.setattr(clock, "now", lambda: NOW)
    return found


def store_interval(vll: Vll, status: str, begin: datetime, end: datetime | None) -> None:
    OperInterval.objects.create(vll_id=vll.pk, status=status, began_at=begin, ended_at=end)


def freeze_percentiles(vll: Vll, month: datetime, **rates: Any) -> None:
    facts = {"in_bps": 10**6, "out_bps": 2 * 10**6, "max_bps": 2 * 10**6, "counted": 8920, "missing": 8}
    for side in "az":
        MonthlyPercentile.objects.create(
            vll_id=vll.pk, side=side, month=month.date(), simulated=False, frozen_at=NOW, **{**facts, **rates}
        )


def store_hour(vll: Vll, at: datetime, sent: int, delivered: int, covered_ms: int = 3_600_000) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO telemetry_hour (vll_id, start_at, a_in_bytes, a_out_bytes, z_in_bytes, z_out_bytes,"
            " a_in_packets, a_out_packets, z_in_packets, z_out_packets, a_covered_ms, z_covered_ms,"
            " simulated)"
            " VALUES (%s, %s, 0, 0, 0, 0, %s, 5, 5, %s, %s, %s, false)",
            [vll.pk, at, sent, delivered, covered_ms, covered_ms],
        )


def test_months_are_listed_since_the_creation_newest_first(vll: Vll) -> None:
    assert [each["month"] for each in months_of(vll=vll, now=NOW)] == ["2026-11", "2026-10", "2026-09"]


def test_at_most_12_months_are_listed_and_at_least_one(vll: Vll) -> None:
    Vll.objects.filter(pk=vll.pk).update(created_at=NOW - timedelta(days=900))
    vll.refresh_from_db()
    found = [each["month"] for each in months_of(vll=vll, now=NOW)]
    assert (len(found), found[0], found[-1]) == (12, "2026-11", "2025-12")
    Vll.objects.filter(pk=vll.pk).update(created_at=NOW - timedelta(hours=1))
    vll.refresh_from_db()
    assert [each["month"] for each in months_of(vll=vll, now=NOW)] == ["2026-11"]


def test_missing_measurement_is_not_a_number(vll: Vll, alice: User) -> None:
    newest = months_of(vll=vll, now=NOW)[0]
    assert newest["availability"]["availability"] is None
    assert newest["loss"]["a_to_z"]["loss_ratio"] is None
    assert newest["p95"] is None
    page = text(signed_in(alice).get(f"/vlls/{vll.pk}/months/"))
    assert "2026-10 not measured" in page
    assert "not final yet: samples of this month can still arrive" in page
    assert "100 %" not in page


def test_each_month_has_its_own_figures(vll: Vll, alice: User) -> None:
    october = datetime(2026, 10, 1, tzinfo=UTC)
    store_interval(vll, "op-up", MADE, october + timedelta(days=1))
    store_interval(vll, "op-down", october + timedelta(days=1), october + timedelta(days=1, minutes=5))
    store_interval(vll, "op-up", october + timedelta(days=1, minutes=5), october + timedelta(days=31))
    freeze_percentiles(vll, october)
    store_hour(vll, october, sent=1_000_000, delivered=999_999)
    store_hour(vll, october + timedelta(hours=1), sent=1000, delivered=1000)
    store_hour(vll, october + timedelta(hours=2), sent=1000, delivered=0, covered_ms=3_599_000)
    _newest, second, oldest = months_of(vll=vll, now=NOW)
    assert second["availability"]["down_s"] == 300
    assert second["loss"]["a_to_z"] == {
        "sent": 1_001_000,
        "policed": 0,
        "delivered": 1_000_999,
        "loss_ratio": 1 / 1_001_000,
        # The largest count of one sample is not stored for these hours; a sample may have taken 35 s.
        "bound_ratio": pytest.approx((1_000_000 + 1000) * 35 / 3600 / 1_001_000),
    }
    assert (second["loss"]["compared"], second["loss"]["missing"], second["loss"]["step_s"]) == (2, 742, 3600)
    assert (second["p95"]["a_end"]["max"], second["p95"]["z_end"]["missing"]) == (2_000_000, 8)
    assert oldest["availability"]["availability"] == 1
    page = text(signed_in(alice).get(f"/vlls/{vll.pk}/months/"))
    assert "2026-10 99.988 % 5 min 0 s" in page
    assert "< 0.98 % of 1 001 000 frames" in page
    assert "2 × 1 h 742 missing" in page
    assert "1 Mbit/s 2 Mbit/s 2 Mbit/s 1 Mbit/s 2 Mbit/s 2 Mbit/s A 8, Z 8" in page


def test_lines_page_loads_the_months_and_links_to_them_without_scripts(vll: Vll, alice: User) -> None:
    page = signed_in(alice)
    url = f"/vlls/{vll.pk}/months/"
    assert f'hx-get="{url}"' in page.get(f"/vlls/{vll.pk}/").content.decode()
    part = page.get(url, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert 'id="months"' in part
    assert "<html" in page.get(url).content.decode()


def test_a_year_of_months_takes_few_statements(vll: Vll) -> None:
    Vll.objects.filter(pk=vll.pk).update(created_at=NOW - timedelta(days=900))
    vll.refresh_from_db()
    with CaptureQueriesContext(connection) as sent:
        months_of(vll=vll, now=NOW)
    assert len(sent) <= 16, [query["sql"][:80] for query in sent]


def test_csv_has_a_row_per_month_empty_cells_and_no_formula(vll: Vll, alice: User) -> None:
    freeze_percentiles(vll, datetime(2026, 10, 1, tzinfo=UTC))
    response = client(alice).get(f"/api/v1/vlls/{vll.pk}/months.csv", HTTP_ACCEPT="text/csv")
    assert response["Content-Disposition"] == f'attachment; filename="months-{vll.pk}.csv"'
    newest, october, _oldest = csv.DictReader(io.StringIO(b"".join(response).decode()))
    assert (newest["month"], newest["availability"], newest["a_to_z_loss_ratio"], newest["a_p95_in_bps"]) == (
        "2026-11",
        "",
        "",
        "",
    )
    assert (newest["compared_step_s"], october["compared_step_s"]) == ("300", "3600")
    assert (october["description"], october["a_p95_in_bps"], october["z_p95_missing"]) == (
        "'=Milk run",
        "1000000",
        "8",
    )


def test_unknown_hours_are_shown_next_to_an_availability_of_100_per_cent(vll: Vll, alice: User) -> None:
    november = datetime(2026, 11, 1, tzinfo=UTC)
    store_interval(vll, "op-up", november, november + timedelta(days=18))
    store_interval(vll, "op-unknown", november + timedelta(days=18), november + timedelta(days=20))
    newest = months_of(vll=vll, now=NOW)[0]["availability"]
    assert (newest["availability"], newest["known_ratio"], newest["unknown_s"]) == (1.0, 0.9, 2 * 86400)
    page = text(signed_in(alice).get(f"/vlls/{vll.pk}/months/"))
    assert "2026-11 100 % of the known 90 % 0 s 2 d" in page
    response = client(alice).get(f"/api/v1/vlls/{vll.pk}/months.csv", HTTP_ACCEPT="text/csv")
    row = next(csv.DictReader(io.StringIO(b"".join(response).decode())))
    assert (row["availability"], row["known_ratio"], row["unknown_s"]) == ("1.0", "0.9", "172800.0")
    response = client(alice).get(
        f"/api/v1/vlls/{vll.pk}/availability?from=2026-11-01T00:00:00Z&to=2026-11-21T00:00:00Z"
    )
    assert (response.json()["known_ratio"], response.json()["unknown_s"]) == (0.9, 172800)
