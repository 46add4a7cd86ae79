"""Reports: final percentiles, availability without guesses, and loss where both ends were counted."""

import csv
import io
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from portal.accounts.models import User
from portal.core import clock
from portal.inventory.models import FRESH, ObservedRouter
from portal.inventory.reported_observation import EndObservation, ObservedReport
from portal.telemetry.availability import availability
from portal.telemetry.counter_ingest import counters_store
from portal.telemetry.line_losses import frame_loss
from portal.telemetry.models import FrozenMonth, MonthlyPercentile, OperInterval
from portal.telemetry.monthly_figures import frozen_percentiles, months_freeze
from portal.telemetry.observation_ingest import observation_take
from portal.telemetry.oper_status import Turn, statuses_write
from portal.telemetry.partitioned_tables import FIVE_MINUTES, partitions_ensure, partitions_keep
from portal.telemetry.reported_counters import CounterReport, CounterSample, EndCount, PolicerCount
from portal.telemetry.rollups import roll_up
from portal.vll.models import Vll, VllEnd
from portal.vll.operations.state_compare_and_swap import lifecycle_move
from portal.vll.states import Lifecycle, OperStatus
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp
from tests.integration.observed_reports import observed_end, observed_report
from tests.integration.orders import order
from tests.integration.router_answers import activate
from tests.integration.telemetry.test_counter_ingest import BOOT, ms
from tests.integration.telemetry.test_rollups import DONE, START, count

pytestmark = pytest.mark.django_db
MARCH, APRIL = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
# Samples are accepted for 2 days; after this time none of March can arrive.
MARCH_IS_OVER = APRIL + timedelta(days=2, hours=1)


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    """Return a line first in service 60 days before March, for a moment. Each test adds its own later
    times.
    """
    vll, since = order(isp, alice).vll, MARCH - timedelta(days=60)
    Vll.objects.filter(pk=vll.pk).update(created_at=since)
    OperInterval.objects.create(vll_id=vll.pk, status="op-unknown", began_at=since, ended_at=since)
    vll.refresh_from_db()
    return vll


def first_in_service(vll: Vll, at: datetime) -> None:
    OperInterval.objects.filter(vll_id=vll.pk).update(began_at=at, ended_at=at)


def five_minutes(vll: Vll, first: int, last: int) -> None:
    """Store rolled-up 5 minutes of March. The n-th counts n bit/s in and 10000 - n bit/s out at end A."""
    partitions_ensure((MARCH.date() + timedelta(days=day) for day in range(31)), FIVE_MINUTES)
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO telemetry_five_minutes (vll_id, start_at, a_in_bytes, a_in_packets, a_out_bytes,
                   a_out_packets, a_covered_ms, z_covered_ms, simulated)
               SELECT %s, %s + (n - 1) * interval '5 minutes', n * 37.5, 1, (10000 - n) * 37.5, 1, 300000, 0,
                      false
               FROM generate_series(%s::int, %s::int) AS n""",
            [vll.pk, MARCH, first, last],
        )


def test_month_of_8928_samples_is_frozen_exactly(vll: Vll) -> None:
    five_minutes(vll, 1, 8928)
    assert months_freeze(now=MARCH_IS_OVER) == 2
    frozen = frozen_percentiles(vll_id=vll.pk)
    # The top 446 of 8928 are ignored: 8482 in; out ranges from 9999 down to 1072, so 9999 - 446 = 9553.
    assert frozen[0]["a_end"] == {
        "in": 8482,
        "out": 9553,
        "max": 9553,
        "counted": 8928,
        "missing": 0,
    }
    assert frozen[0]["z_end"] == {
        "in": None,
        "out": None,
        "max": None,
        "counted": 0,
        "missing": 8928,
    }
    assert frozen[0]["month"] == "2026-03"


def test_missing_buckets_are_counted_and_not_read_as_zero(vll: Vll) -> None:
    five_minutes(vll, 101, 8928)
    months_freeze(now=MARCH_IS_OVER)
    row = MonthlyPercentile.objects.get(vll_id=vll.pk, side="a")
    # 8828 are counted, beginning with 101, so rank 8387 is 8487.
    assert (row.counted, row.missing, row.in_bps) == (8828, 100, 8487)


def test_month_is_frozen_once_and_only_after_its_last_sample_may_have_arrived(vll: Vll) -> None:
    five_minutes(vll, 1, 8928)
    assert months_freeze(now=MARCH_IS_OVER - timedelta(seconds=1)) == 0
    assert months_freeze(now=MARCH_IS_OVER) == 2
    assert months_freeze(now=MARCH_IS_OVER + timedelta(days=1)) == 0
    assert [month["month"] for month in frozen_percentiles(vll_id=vll.pk)] == ["2026-03"]


def test_month_is_open_as_long_as_its_samples_are_accepted(isp: Isp, vll: Vll) -> None:
    now = APRIL + timedelta(days=2) - timedelta(seconds=20)
    last = CounterSample(1, ms(APRIL) - 10_000, ms(APRIL), (EndCount(str(vll.pk), "a", 1, 1, 1, 1),))
    partitions_ensure([MARCH.date()], FIVE_MINUTES)
    assert months_freeze(now=now) == 0
    report = CounterReport(str(BOOT), ms(now), False, 0, (last,))
    assert counters_store(router=isp.routers["rhino"], report=report, now=now).accepted == 1
    later = APRIL + timedelta(days=2)
    assert counters_store(router=isp.routers["rhino"], report=report, now=later).refused == 1
    months_freeze(now=MARCH_IS_OVER)
    assert MonthlyPercentile.objects.get(vll_id=vll.pk, side="a").counted == 1


def test_portal_that_was_down_over_several_months_freezes_them_all(vll: Vll) -> None:
    five_minutes(vll, 1, 8928)
    away = MARCH + timedelta(days=120)
    partitions_ensure([APRIL.date(), (MARCH + timedelta(days=70)).date()], FIVE_MINUTES)
    # In any order after the downtime: the portal keeps partitions that are not frozen yet.
    partitions_keep(now=away)
    assert months_freeze(now=away) == 6
    assert [month["month"] for month in frozen_percentiles(vll_id=vll.pk)] == [
        "2026-05",
        "2026-04",
        "2026-03",
    ]
    assert MonthlyPercentile.objects.get(month=MARCH.date(), side="a").in_bps == 8482
    partitions_keep(now=away)
    assert stored_from() > MARCH.date() + timedelta(days=70)
    assert FrozenMonth.objects.count() == 3


def stored_from() -> date:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT min(inhrelid::regclass::text) FROM pg_inherits"
            " WHERE inhparent = 'telemetry_five_minutes'::regclass"
        )
        return datetime.strptime(cursor.fetchone()[0][-8:], "%Y%m%d").replace(tzinfo=UTC).date()


def test_missing_time_counts_from_the_first_time_in_service(vll: Vll) -> None:
    five_minutes(vll, 289, 8928)
    first_in_service(vll, MARCH + timedelta(days=1))
    months_freeze(now=MARCH_IS_OVER)
    row = MonthlyPercentile.objects.get(vll_id=vll.pk, side="a")
    assert (row.counted, row.missing) == (8640, 0)


def test_line_that_was_never_in_service_has_no_months(vll: Vll) -> None:
    OperInterval.objects.all().delete()
    five_minutes(vll, 1, 10)
    assert months_freeze(now=MARCH_IS_OVER) == 0


def test_frozen_month_never_changes(vll: Vll) -> None:
    five_minutes(vll, 1, 10)
    months_freeze(now=MARCH_IS_OVER)
    frozen = MonthlyPercentile.objects.filter(vll_id=vll.pk)
    for change in (lambda: frozen.update(in_bps=1), frozen.delete):
        with pytest.raises(IntegrityError, match="never change"), transaction.atomic():
            change()


def test_line_first_in_service_later_has_no_earlier_month(vll: Vll) -> None:
    five_minutes(vll, 1, 1)
    first_in_service(vll, APRIL)
    assert months_freeze(now=MARCH_IS_OVER) == 0


def empty_report(*, sent_ms: int, ends: tuple[EndObservation, ...] = ()) -> ObservedReport:
    return observed_report(sent_ms=sent_ms, ends=ends, vpp_boot_ms=None)


def oper(vll: Vll, status: OperStatus, at: datetime) -> None:
    statuses_write([Turn(vll.pk, status, at)])


def test_availability_counts_up_against_down_and_unknown_apart(vll: Vll) -> None:
    lifecycle_move(vll, Lifecycle.ACTIVE, now=MARCH)
    oper(vll, OperStatus.UP, MARCH + timedelta(hours=6))
    oper(vll, OperStatus.DOWN, MARCH + timedelta(hours=24))
    oper(vll, OperStatus.UP, MARCH + timedelta(hours=30))
    response = availability(
        vll=vll, since=MARCH, until=MARCH + timedelta(days=2), now=MARCH + timedelta(days=5)
    )
    first, second = response["periods"]
    assert (first["up_s"], first["down_s"], first["unknown_s"]) == (18 * 3600, 0, 6 * 3600)
    assert first["availability"] == 1.0
    assert (second["up_s"], second["down_s"], second["availability"]) == (18 * 3600, 6 * 3600, 0.75)
    assert response["availability"] == 36 / 42


def test_time_without_a_running_portal_is_unknown(isp: Isp, vll: Vll) -> None:
    activate(vll)
    before = clock.now() - timedelta(hours=4)
    OperInterval.objects.all().delete()
    Vll.objects.filter(pk=vll.pk).update(oper_status=OperStatus.UNKNOWN)
    statuses_write([Turn(vll.pk, OperStatus.UP, before)])
    # The portal is down for three hours, so nothing marks the line in that time.
    last = before + timedelta(hours=1)
    for router in ("rhino", "hippo"):
        observed = {"boot_id": BOOT, "sent_ms": ms(last), "agent_version": "0.1.0", "vpp_connected": True}
        ObservedRouter.objects.update_or_create(
            router=isp.routers[router], defaults={**observed, "reported_at": last}
        )
    back = last + timedelta(hours=3)
    for router, side in (("rhino", "a"), ("hippo", "z")):
        report = empty_report(sent_ms=ms(back), ends=(observed_end(vll.pk, side),))
        assert observation_take(router=isp.routers[router], report=report, now=back)
    response = availability(vll=vll, since=before, until=back + timedelta(hours=1), now=back)
    assert (response["up_s"], response["unknown_s"]) == (
        3600 + FRESH.total_seconds(),
        3 * 3600 - FRESH.total_seconds(),
    )
    vll.refresh_from_db()
    assert vll.oper_status == OperStatus.UP


def test_line_on_a_single_router_is_no_exception(isp: Isp, vll: Vll) -> None:
    activate(vll)
    VllEnd.objects.filter(vll=vll, side="z").update(port=isp.ports["rhino:host-cust2"])
    before = clock.now() - timedelta(hours=4)
    OperInterval.objects.all().delete()
    ends = tuple(observed_end(vll.pk, side) for side in "az")
    for at in (before, before + timedelta(hours=3)):
        report = empty_report(sent_ms=ms(at), ends=ends)
        assert observation_take(router=isp.routers["rhino"], report=report, now=at)
    until = before + timedelta(hours=3)
    response = availability(vll=vll, since=before, until=until, now=until)
    assert (response["up_s"], response["unknown_s"]) == (
        FRESH.total_seconds(),
        3 * 3600 - FRESH.total_seconds(),
    )


def test_event_dated_before_the_current_status_does_not_shorten_it(vll: Vll) -> None:
    lifecycle_move(vll, Lifecycle.ACTIVE, now=MARCH)
    oper(vll, OperStatus.UP, MARCH + timedelta(hours=2))
    oper(vll, OperStatus.UNKNOWN, MARCH + timedelta(hours=1))
    until = MARCH + timedelta(hours=3)
    response = availability(vll=vll, since=MARCH, until=until, now=until)
    assert (response["up_s"], response["unknown_s"]) == (0, 3 * 3600)


def test_suspended_time_and_time_after_the_end_do_not_count(vll: Vll) -> None:
    lifecycle_move(vll, Lifecycle.ACTIVE, now=MARCH)
    oper(vll, OperStatus.UP, MARCH)
    lifecycle_move(vll, Lifecycle.SUSPENDED, now=MARCH + timedelta(hours=1))
    oper(vll, OperStatus.DOWN, MARCH + timedelta(hours=2))
    lifecycle_move(vll, Lifecycle.ACTIVE, now=MARCH + timedelta(hours=3))
    oper(vll, OperStatus.UP, MARCH + timedelta(hours=4))
    lifecycle_move(vll, Lifecycle.PENDING_TERMINATE, now=MARCH + timedelta(hours=5))
    response = availability(vll=vll, since=MARCH, until=APRIL, period="month", now=MARCH + timedelta(days=9))
    assert (response["up_s"], response["down_s"]) == (2 * 3600, 3600)
    assert len(response["periods"]) == 1
    assert not OperInterval.objects.filter(ended_at__isnull=True).exists()


def test_loss_compares_only_time_that_both_ends_counted_without_a_gap(isp: Isp, vll: Vll) -> None:
    # Each 5 minutes have 3 frames in and the given number out (see count); Z has a gap in the third.
    count(isp, vll, *((n * 300_000, (n + 1) * 300_000, 0, 3) for n in range(3)))
    count(isp, vll, (0, 300_000, 0, 3), (300_000, 600_000, 0, 1), (600_000, 800_000, 0, 0), side="z")
    roll_up(now=DONE)
    response = frame_loss(vll=vll, since=START, until=START + timedelta(minutes=15), now=DONE)
    assert (response["compared"], response["missing"]) == (2, 1)
    # One sample per 5 minutes: all its frames may belong to the neighbouring bucket.
    assert response["a_to_z"] == {
        "sent": 6,
        "policed": 0,
        "delivered": 4,
        "loss_ratio": pytest.approx(1 / 3),
        "bound_ratio": 1.0,
    }
    assert response["z_to_a"] == {
        "sent": 6,
        "policed": 0,
        "delivered": 6,
        "loss_ratio": 0.0,
        "bound_ratio": 1.0,
    }


def test_loss_without_frames_has_no_ratio(vll: Vll) -> None:
    response = frame_loss(vll=vll, since=START, until=START + timedelta(minutes=15), now=DONE)
    assert (response["compared"], response["missing"], response["a_to_z"]["loss_ratio"]) == (0, 3, None)


@pytest.mark.parametrize("report", ["percentiles", "availability", "loss", "throughput.csv", "throughput"])
def test_stranger_finds_no_report(vll: Vll, alice: User, charlie: User, report: str) -> None:
    assert client(charlie).get(f"/api/v1/vlls/{vll.pk}/{report}").status_code == 404
    assert client(alice).get(f"/api/v1/vlls/{vll.pk}/{report}").status_code == 200


def test_invalid_query_is_refused_with_a_problem_document(vll: Vll, alice: User) -> None:
    for query in (
        *("availability?period=week", "loss?from=2020-01-01T00:00:00Z", "throughput.csv?unit=cows"),
        *("loss?to=", "throughput.csv?step=", "availability?period="),
    ):
        response = client(alice).get(f"/api/v1/vlls/{vll.pk}/{query}", HTTP_ACCEPT="*/*")
        assert (response.status_code, response["Content-Type"]) == (422, "application/problem+json")


@pytest.mark.parametrize("name", ["=1+1", "+41", "-1", "@SUM(A1)"])
def test_no_cell_of_the_csv_is_a_formula(vll: Vll, alice: User, name: str) -> None:
    Vll.objects.filter(pk=vll.pk).update(description=name)
    response = client(alice).get(f"/api/v1/vlls/{vll.pk}/throughput.csv", HTTP_ACCEPT="text/csv")
    assert response.streaming
    rows = list(csv.DictReader(io.StringIO(b"".join(response).decode())))
    assert len(rows) >= 360
    assert {row["description"] for row in rows} == {f"'{name}"}
    assert rows[0]["a_in"] == ""


def store_minutes(
    isp: Isp, vll: Vll, side: str, *minutes: int, sent: int, out: int, violate: int | None
) -> None:
    """Store one sample for each of these minutes after START, all with these frames."""
    counts = None if violate is None else PolicerCount(0, sent - violate, 0, 0, 0, violate)
    samples = tuple(
        CounterSample(
            minute,
            ms(START) + minute * 60_000,
            ms(START) + (minute + 1) * 60_000,
            (EndCount(str(vll.pk), side, 0, sent, 0, out, counts),),
        )
        for minute in minutes
    )
    router = isp.routers["rhino" if side == "a" else "hippo"]
    report = CounterReport(str(BOOT), ms(DONE), False, 0, samples)
    assert counters_store(router=router, report=report, now=DONE).accepted == len(samples)


def loss_of(vll: Vll) -> dict[str, Any]:
    return frame_loss(vll=vll, since=START, until=START + timedelta(minutes=5), now=DONE)


def test_frames_dropped_by_the_policer_are_no_loss(isp: Isp, vll: Vll) -> None:
    store_minutes(isp, vll, "a", *range(5), sent=100, out=50, violate=30)
    store_minutes(isp, vll, "z", *range(5), sent=50, out=63, violate=0)
    response = loss_of(vll)
    assert response["a_to_z"] == {
        "sent": 500,
        "policed": 150,
        "delivered": 315,
        "loss_ratio": pytest.approx(0.1),
        "bound_ratio": pytest.approx(2 * 70 / 350),
    }
    assert response["z_to_a"] == {
        "sent": 250,
        "policed": 0,
        "delivered": 250,
        "loss_ratio": 0.0,
        "bound_ratio": pytest.approx(2 * 50 / 250),
    }


def test_minutes_without_policer_counts_are_a_gap(isp: Isp, vll: Vll) -> None:
    store_minutes(isp, vll, "a", 0, 1, 2, sent=100, out=50, violate=30)
    store_minutes(isp, vll, "a", 3, 4, sent=100, out=50, violate=None)
    store_minutes(isp, vll, "z", *range(5), sent=50, out=70, violate=0)
    assert (loss_of(vll)["compared"], loss_of(vll)["missing"]) == (0, 1)


def test_time_that_was_counted_twice_is_not_compared(isp: Isp, vll: Vll) -> None:
    store_minutes(isp, vll, "a", *range(5), sent=100, out=50, violate=None)
    store_minutes(isp, vll, "z", *range(5), sent=50, out=100, violate=None)
    assert loss_of(vll)["compared"] == 1
    # The clock of A was set back by two minutes, and the portal stores both counts.
    twice = CounterSample(
        77, ms(START) + 120_000, ms(START) + 180_000, (EndCount(str(vll.pk), "a", 0, 100, 0, 50),)
    )
    report = CounterReport(str(BOOT), ms(DONE), False, 0, (twice,))
    assert counters_store(router=isp.routers["rhino"], report=report, now=DONE).accepted == 1
    assert (loss_of(vll)["compared"], loss_of(vll)["missing"]) == (0, 1)
