"""Throughput: the sum of bits is kept, gaps stay gaps, and disorder and repetition change nothing."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.accounts.models import User
from portal.telemetry.buckets import buckets_of
from portal.telemetry.counter_ingest import counters_store
from portal.telemetry.errors import RangeEmpty, StepRefused
from portal.telemetry.models import OperInterval, Sample
from portal.telemetry.reported_counters import CounterReport, CounterSample, EndCount
from portal.telemetry.throughput import throughput
from portal.vll.models import Vll
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.telemetry.test_counter_ingest import BOOT

pytestmark = pytest.mark.django_db
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = START + timedelta(days=1)


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    vll = order(isp, alice).vll
    first_in_service(vll, START - timedelta(days=1))
    return vll


def first_in_service(vll: Vll, at: datetime) -> None:
    OperInterval.objects.update_or_create(vll_id=vll.pk, defaults={"status": "op-up", "began_at": at})


def count(isp: Isp, vll: Vll, *intervals: tuple[float, float, int, int], simulated: bool = False) -> None:
    """Store (from, to, in bytes, out bytes) of end A; times in seconds after START."""
    samples = tuple(
        CounterSample(
            seq=int(begin * 1000),
            from_ms=int((START.timestamp() + begin) * 1000),
            to_ms=int((START.timestamp() + end) * 1000),
            ends=(EndCount(str(vll.pk), "a", in_bytes, 1, out_bytes, 1),),
        )
        for begin, end, in_bytes, out_bytes in intervals
    )
    report = CounterReport(str(BOOT), int(LATER.timestamp() * 1000), simulated, 0, samples)
    counters_store(router=isp.routers["rhino"], report=report, now=LATER)


def drawn(vll: Vll, seconds: float, *, step_s: int | None = 10, since: float = 0) -> dict[str, Any]:
    begin = START + timedelta(seconds=since)
    return throughput(
        vll=vll, since=begin, until=START + timedelta(seconds=seconds), step_s=step_s, now=LATER
    )


def rates(answer: dict[str, Any]) -> list[tuple[int | None, int | None]]:
    return [(point[1], point[2]) for point in answer["a_end"]]


def test_a_sample_on_the_grid_is_one_point(isp: Isp, vll: Vll) -> None:
    count(isp, vll, (0, 10, 1_250_000, 0))
    answer = drawn(vll, 20)
    assert answer["a_end"] == [
        (int(START.timestamp()), 1_000_000, 0),
        (int(START.timestamp()) + 10, None, None),
    ]
    assert answer["z_end"] == [(point[0], None, None) for point in answer["a_end"]]
    assert (answer["step_s"], answer["unit"], answer["simulated"]) == (10, "bit/s", False)


def test_a_sample_across_two_buckets_has_its_rate_in_both(isp: Isp, vll: Vll) -> None:
    count(isp, vll, (5, 15, 1000, 500))
    assert rates(drawn(vll, 30)) == [(800, 400), (800, 400), (None, None)]


def test_a_rate_is_over_the_time_that_was_counted_not_over_the_bucket(isp: Isp, vll: Vll) -> None:
    count(isp, vll, (0, 10, 1000, 0))
    assert rates(drawn(vll, 60, step_s=60)) == [(800, 0)]


def test_an_idle_line_is_zero_and_a_silent_agent_is_a_gap(isp: Isp, vll: Vll) -> None:
    count(isp, vll, (0, 10, 0, 0), (20, 30, 0, 0))
    assert rates(drawn(vll, 30)) == [(0, 0), (None, None), (0, 0)]


def test_simulated_traffic_is_marked(isp: Isp, vll: Vll) -> None:
    count(isp, vll, (0, 10, 1, 1), simulated=True)
    assert drawn(vll, 10)["simulated"] is True


def test_missing_buckets_are_counted(isp: Isp, vll: Vll) -> None:
    count(isp, vll, *((n * 10, n * 10 + 10, 1, 1) for n in range(30) if n != 7))
    answer = drawn(vll, 300)
    assert answer["missing"] == 30  # the Z end has counted nothing at all
    assert answer["p95"]["a_end"]["missing"] == 0
    assert answer["p95"]["z_end"] == {"in": None, "out": None, "max": None, "missing": 1}


def test_what_cannot_have_been_reported_yet_is_not_missing(vll: Vll) -> None:
    answer = throughput(
        vll=vll, since=START, until=START + timedelta(minutes=5), now=START + timedelta(minutes=1)
    )
    assert answer["missing"] == 3
    assert len(answer["a_end"]) == 30


def test_time_before_the_line_was_in_service_or_after_is_not_missing(vll: Vll) -> None:
    first_in_service(vll, START + timedelta(seconds=95))
    assert drawn(vll, 120)["missing"] == 2
    OperInterval.objects.update(ended_at=START + timedelta(seconds=112))
    assert drawn(vll, 3600)["missing"] == 350
    Vll.objects.filter(pk=vll.pk).update(lifecycle="terminated", wanted_present=False)
    vll.refresh_from_db()
    assert drawn(vll, 3600)["missing"] == 1
    OperInterval.objects.all().delete()
    assert drawn(vll, 3600)["missing"] == 0


def test_the_95th_percentile_is_of_five_minute_buckets_per_direction_and_of_the_larger(
    isp: Isp, vll: Vll
) -> None:
    count(isp, vll, *((n * 300, (n + 1) * 300, n * 37_500, (39 - n) * 37_500) for n in range(40)))
    p95 = drawn(vll, 40 * 300, step_s=300)["p95"]["a_end"]
    assert p95 == {"in": 37_000, "out": 37_000, "max": 38_000, "missing": 0}
    assert drawn(vll, 40 * 300, step_s=60)["p95"]["a_end"] == p95


def test_the_other_vlls_traffic_is_not_drawn(isp: Isp, vll: Vll) -> None:
    count(isp, vll, (0, 10, 1000, 0))
    another = Vll(created_at=START)
    assert rates(drawn(another, 10)) == [(None, None)]


@pytest.mark.parametrize("step_s", [1, 7, 11, 100_000])
def test_a_step_that_is_not_offered_is_refused(vll: Vll, step_s: int) -> None:
    with pytest.raises(StepRefused):
        drawn(vll, 3600, step_s=step_s)


def test_a_step_that_draws_too_many_points_is_refused(vll: Vll) -> None:
    with pytest.raises(StepRefused):
        drawn(vll, 10_001 * 10, step_s=10)


@pytest.mark.parametrize("seconds", [0, -1])
def test_an_empty_range_is_refused(vll: Vll, seconds: int) -> None:
    with pytest.raises(RangeEmpty):
        drawn(vll, seconds)


# Lengths of samples and of the gaps between them, in milliseconds, and bytes in and out.
_intervals = st.lists(
    st.tuples(st.integers(1, 90_000), st.integers(0, 90_000), st.integers(0, 10**12), st.integers(0, 10**12)),
    min_size=1,
    max_size=20,
)


def laid_out(parts: list[tuple[int, int, int, int]]) -> list[tuple[float, float, int, int]]:
    """The parts one after the other, as ``count`` takes them."""
    intervals, at = [], 0
    for length, gap, in_bytes, out_bytes in parts:
        intervals.append((at / 1000, (at + length) / 1000, in_bytes, out_bytes))
        at += length + gap
    return intervals


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=_intervals, step_s=st.sampled_from([10, 60, 300]))
def test_every_bit_is_drawn_once(isp: Isp, vll: Vll, parts: list[Any], step_s: int) -> None:
    intervals = laid_out(parts)
    with transaction.atomic():
        count(isp, vll, *intervals)
        until = START + timedelta(seconds=intervals[-1][1])
        buckets = buckets_of(vll, START, until, step_s)[0]["a"].values()
        transaction.set_rollback(True)
    assert sum(bucket.into for bucket in buckets) == pytest.approx(8 * sum(i[2] for i in intervals))
    assert sum(bucket.out for bucket in buckets) == pytest.approx(8 * sum(i[3] for i in intervals))
    assert sum(bucket.covered_s for bucket in buckets) == pytest.approx(sum(i[1] - i[0] for i in intervals))
    assert all(0 < bucket.covered_s <= step_s + 1e-6 for bucket in buckets)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=_intervals, data=st.data())
def test_repetition_and_disorder_change_nothing(isp: Isp, vll: Vll, parts: list[Any], data: Any) -> None:
    intervals = laid_out(parts)
    disorder = data.draw(st.permutations(intervals + intervals[: len(intervals) // 2]))
    with transaction.atomic():
        count(isp, vll, *intervals)
        once = drawn(vll, intervals[-1][1])
        Sample.objects.all().delete()
        for interval in disorder:
            count(isp, vll, interval)
        assert drawn(vll, intervals[-1][1]) == once
        transaction.set_rollback(True)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=_intervals)
def test_a_point_is_drawn_exactly_where_something_was_counted(isp: Isp, vll: Vll, parts: list[Any]) -> None:
    intervals = laid_out(parts)
    with transaction.atomic():
        count(isp, vll, *intervals)
        answer = drawn(vll, intervals[-1][1])
        transaction.set_rollback(True)
    for start, in_bps, _ in answer["a_end"]:
        begin = start - START.timestamp()
        touched = any(i[0] < begin + 10 and i[1] > begin for i in intervals)
        assert (in_bps is not None) == touched
