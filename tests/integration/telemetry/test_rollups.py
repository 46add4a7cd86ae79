"""Rollups agree with the samples, even when samples are late, repeated, disordered or already deleted."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.accounts.models import User
from portal.telemetry.buckets import STEPS_S, Bucket, Unit, buckets_of, merged
from portal.telemetry.counter_ingest import Stored, counters_store
from portal.telemetry.errors import StepRefused
from portal.telemetry.models import FrozenMonth, OperInterval, Sample
from portal.telemetry.partitioned_tables import (
    DAYS,
    FIVE_MINUTES,
    HOURS,
    TABLES,
    partitions_ensure,
    partitions_keep,
)
from portal.telemetry.reported_counters import CounterReport, CounterSample, EndCount
from portal.telemetry.rollups import roll_up
from portal.telemetry.throughput import throughput
from portal.vll.models import Vll
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.telemetry.test_counter_ingest import BOOT

pytestmark = pytest.mark.django_db
# Shortly before midnight, so that a few hours of samples belong to two days.
START = datetime(2026, 3, 1, 22, tzinfo=UTC)
DONE = START + timedelta(days=1, hours=12)
_Interval = tuple[int, int, int, int]


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    vll = order(isp, alice).vll
    OperInterval.objects.create(vll_id=vll.pk, status="op-up", began_at=START - timedelta(days=400))
    return vll


def count(isp: Isp, vll: Vll, *intervals: _Interval, side: str = "a", now: datetime = DONE) -> Stored:
    """Store samples of (from, to, bytes in, packets out), with times in milliseconds after START."""
    start_ms = int(START.timestamp() * 1000)
    samples = tuple(
        CounterSample(
            begin, start_ms + begin, start_ms + end, (EndCount(str(vll.pk), side, into, 3, 5, out),)
        )
        for begin, end, into, out in intervals
    )
    router = isp.routers["rhino" if side == "a" else "hippo"]
    report = CounterReport(str(BOOT), int(now.timestamp() * 1000), False, 0, samples)
    return counters_store(router=router, report=report, now=now)


def stored(table: str = "telemetry_five_minutes") -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"TABLE {table}")
        return len(cursor.fetchall())


def stale() -> int:
    return stored("telemetry_stale_bucket")


def read(vll: Vll, step_s: int, unit: Unit = Unit.BITS) -> dict[str, dict[int, Bucket]]:
    return buckets_of(vll, START, START + timedelta(hours=14), step_s, unit)[0]


def from_samples(vll: Vll, step_s: int, unit: Unit = Unit.BITS) -> dict[str, dict[int, Bucket]]:
    """Return the figures without rollups: read in buckets of 10 s, which no rollup has, and merged."""
    since = datetime.fromtimestamp(START.timestamp() // step_s * step_s, tz=UTC)
    until = START + timedelta(hours=14)
    until = datetime.fromtimestamp(-(-until.timestamp() // step_s) * step_s, tz=UTC)
    return {
        side: merged(counted, step_s) for side, counted in buckets_of(vll, since, until, 10, unit)[0].items()
    }


def equal(one: dict[str, dict[int, Bucket]], other: dict[str, dict[int, Bucket]]) -> bool:
    def flat(found: dict[str, dict[int, Bucket]]) -> list[float]:
        return [
            value
            for side in "az"
            for start in sorted(found[side])
            for value in (
                start,
                found[side][start].into,
                found[side][start].out,
                found[side][start].covered_s,
            )
        ]

    return flat(one) == pytest.approx(flat(other), rel=1e-9, abs=1e-6)


# Lengths of samples and of the gaps between them (ms), counts, the end, and the round of arrival.
_parts = st.lists(
    st.tuples(
        st.integers(1, 3_600_000),
        st.integers(0, 3_600_000),
        st.integers(0, 10**12),
        st.integers(0, 10**9),
        st.sampled_from("az"),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=14,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=_parts,
    step_s=st.sampled_from([step for step in STEPS_S if step >= 300]),
    unit=st.sampled_from(Unit),
    rolled=st.booleans(),
)
def test_rollups_agree_with_the_samples_at_every_step(
    isp: Isp, vll: Vll, parts: list[Any], step_s: int, unit: Unit, rolled: bool
) -> None:
    """Samples arrive in three rounds, in any order, with a roll-up after each except perhaps the last."""
    with transaction.atomic():
        at, rounds = 0, ([], [], [])
        for length, gap, into, out, side, when in parts:
            rounds[when].append((side, (at, at + length, into, out)))
            at += length + gap
        for number, now in enumerate((START + timedelta(hours=28), DONE, DONE)):
            for side, interval in rounds[number]:
                count(isp, vll, interval, side=side)
            if number < 2 or rolled:
                roll_up(now=now)
        assert equal(read(vll, step_s, unit), from_samples(vll, step_s, unit))
        transaction.set_rollback(True)


def test_samples_may_be_deleted_after_the_roll_up(isp: Isp, vll: Vll) -> None:
    count(isp, vll, *((n * 10_000, (n + 1) * 10_000, n, n) for n in range(1500)))
    before = {step: from_samples(vll, step) for step in (300, 3600, 86400)}
    roll_up(now=DONE)
    Sample.objects.all().delete()
    assert all(equal(read(vll, step), before[step]) for step in before)
    assert (stored(), stored("telemetry_hour"), stored("telemetry_day")) == (50, 5, 2)


def test_unfinished_day_is_read_from_its_hours(isp: Isp, vll: Vll) -> None:
    count(isp, vll, *((n * 10_000, (n + 1) * 10_000, n, n) for n in range(1500)))
    roll_up(now=START + timedelta(hours=20))
    assert stored("telemetry_day") == 1
    assert equal(read(vll, 86400), from_samples(vll, 86400))


def test_rolled_up_bucket_is_not_rolled_up_again(isp: Isp, vll: Vll) -> None:
    count(isp, vll, (0, 10_000, 1, 1))
    later = DONE + timedelta(days=2)
    assert roll_up(now=later) == 3
    assert stale() == 0
    assert count(isp, vll, (0, 10_000, 1, 1)).duplicate == 1
    assert roll_up(now=later) == 0


def test_late_sample_is_counted_immediately_and_rolled_up_next(isp: Isp, vll: Vll) -> None:
    count(isp, vll, (0, 10_000, 100, 1))
    roll_up(now=DONE + timedelta(days=2))
    count(isp, vll, (10_000, 20_000, 300, 1))
    expected = Bucket(8 * 400, 8 * 10, 20)
    start = int(START.timestamp())
    assert read(vll, 300)["a"] == {start: expected}
    assert read(vll, 86400)["a"] == {start - start % 86400: expected}
    roll_up(now=DONE + timedelta(days=2))
    assert stale() == 0
    assert read(vll, 86400)["a"] == {start - start % 86400: expected}


def test_unfinished_bucket_is_not_rolled_up(isp: Isp, vll: Vll) -> None:
    count(isp, vll, (0, 10_000, 1, 1), now=START + timedelta(seconds=20))
    assert roll_up(now=START + timedelta(seconds=329)) == 0
    assert roll_up(now=START + timedelta(seconds=330)) == 1
    assert (stored(), stored("telemetry_hour")) == (1, 0)


def test_gap_stays_a_gap_and_a_quiet_line_is_zero(isp: Isp, vll: Vll) -> None:
    count(isp, vll, (0, 300_000, 0, 0), (600_000, 700_000, 0, 0))
    roll_up(now=DONE)
    response = throughput(
        vll=vll, since=START, until=START + timedelta(minutes=15), step_s=300, unit=Unit.PACKETS, now=DONE
    )
    assert [point[2] for point in response["a_end"]] == [0, None, 0]
    assert (response["unit"], response["missing"]) == ("packet/s", 3)
    assert response["p95"]["a_end"]["missing"] == 1


def test_sample_older_than_the_retention_is_refused_and_changes_no_rollup(isp: Isp, vll: Vll) -> None:
    late = START + timedelta(days=2, seconds=1)
    assert count(isp, vll, (0, 10_000, 1, 1), now=late).refused == 1
    assert stale() == 0


def test_each_table_has_its_own_retention(isp: Isp, vll: Vll) -> None:
    ages = {table.name: table.retention.days for table in TABLES}
    assert ages == {
        "telemetry_sample": 2,
        "telemetry_five_minutes": 40,
        "telemetry_hour": 731,
        "telemetry_day": 1827,
    }
    count(isp, vll, (0, 10_000, 1, 1))
    roll_up(now=START + timedelta(days=3))
    FrozenMonth.objects.create(month=START.date().replace(day=1), frozen_at=DONE)
    for days, left in ((4, (0, 1, 1, 1)), (42, (0, 0, 1, 1)), (765, (0, 0, 0, 1)), (1860, (0, 0, 0, 0))):
        partitions_keep(now=START + timedelta(days=days))
        assert tuple(stored(table.name) for table in TABLES) == left


def test_samples_without_a_rollup_are_kept(isp: Isp, vll: Vll) -> None:
    count(isp, vll, (0, 10_000, 1, 1))
    partitions_keep(now=START + timedelta(days=9))
    assert Sample.objects.count() == 1
    roll_up(now=START + timedelta(days=9))
    partitions_keep(now=START + timedelta(days=9))
    assert Sample.objects.count() == 0
    assert read(vll, 300)["a"]


def test_step_finer_than_the_stored_data_is_refused_and_never_chosen(vll: Vll) -> None:
    def step_of(age: timedelta, step_s: int | None) -> int:
        since = DONE - age
        return int(
            throughput(vll=vll, since=since, until=since + timedelta(hours=1), step_s=step_s, now=DONE)[
                "step_s"
            ]
        )

    assert step_of(timedelta(days=1), None) == 10
    assert step_of(timedelta(days=3), None) == FIVE_MINUTES.step_s
    assert step_of(timedelta(days=50), None) == HOURS.step_s
    assert step_of(timedelta(days=800), None) == DAYS.step_s
    with pytest.raises(StepRefused) as refused:
        step_of(timedelta(days=3), 10)
    assert refused.value.offered_s == STEPS_S[3:]


def test_percentile_is_not_computed_from_remaining_data(isp: Isp, vll: Vll) -> None:
    count(isp, vll, (0, 300_000, 1, 1))
    roll_up(now=DONE)
    response = throughput(vll=vll, since=DONE - timedelta(days=60), until=DONE, now=DONE)
    assert response["p95"]["a_end"]["in"] is None


@pytest.mark.django_db(transaction=True)
def test_no_sample_is_lost_when_its_report_and_a_roll_up_run_together(isp: Isp, vll: Vll) -> None:
    partitions_ensure([START.date()])
    count(isp, vll, (0, 10_000, 100, 1))
    reporting, rolled = threading.Event(), threading.Event()

    def report_slowly() -> None:
        try:
            with transaction.atomic():
                count(isp, vll, (10_000, 20_000, 300, 1))
                reporting.set()
                assert rolled.wait(30)
        finally:
            connection.close()

    agent = threading.Thread(target=report_slowly)
    agent.start()
    assert reporting.wait(30)
    roll_up(now=DONE)
    rolled.set()
    agent.join()
    roll_up(now=DONE)
    assert read(vll, 300)["a"] == {int(START.timestamp()): Bucket(8 * 400, 8 * 10, 20)}


@pytest.mark.django_db(transaction=True)
def test_one_of_two_concurrent_roll_ups_does_the_work(isp: Isp, vll: Vll) -> None:
    count(isp, vll, (0, 10_000, 1, 1))
    counted: list[int] = []

    def roll_up_elsewhere() -> None:
        counted.append(roll_up(now=DONE))
        connection.close()

    with transaction.atomic():
        assert roll_up(now=DONE) == 3
        other = threading.Thread(target=roll_up_elsewhere)
        other.start()
        other.join()
    assert counted == [0]
