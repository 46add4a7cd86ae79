"""Percentiles and steps of throughput graphs."""

import random

import pytest

from portal.telemetry.buckets import (
    MAX_POINTS,
    STEPS_S,
    Bucket,
    automatic_step,
    merged,
    percentile_95,
    points,
)


def test_31_days_of_five_minute_samples_leave_out_the_top_446() -> None:
    rates = [float(rate) for rate in range(1, 8929)]
    random.Random(95).shuffle(rates)
    assert percentile_95(rates) == 8482


@pytest.mark.parametrize(("count", "expected"), [(1, 1), (19, 19), (20, 19), (21, 20), (100, 95)])
def test_the_percentile_is_the_nearest_rank(count: int, expected: int) -> None:
    assert percentile_95(map(float, range(1, count + 1))) == expected


def test_no_samples_have_no_percentile() -> None:
    assert percentile_95([]) is None


@pytest.mark.parametrize(
    ("hours", "step"),
    [(1, 10), (2.7, 10), (3, 30), (24, 300), (24 * 7, 900), (24 * 31, 3600), (24 * 365, 86400)],
)
def test_the_step_grows_with_the_range(hours: float, step: int) -> None:
    assert automatic_step(hours * 3600) == step


@pytest.mark.parametrize("step", STEPS_S)
def test_a_graph_never_has_many_more_points_than_it_can_show(step: int) -> None:
    assert automatic_step(step * MAX_POINTS) == step


def test_shorter_buckets_add_up_to_longer_ones() -> None:
    shorter = {0: Bucket(8, 80, 10), 10: Bucket(16, 0, 5), 30: Bucket(1, 1, 1)}
    assert merged(shorter, 30) == {0: Bucket(24, 80, 15), 30: Bucket(1, 1, 1)}


def test_every_offered_step_is_made_of_five_minutes_or_makes_them() -> None:
    assert all(max(step, 300) % min(step, 300) == 0 for step in STEPS_S)


def test_a_bucket_without_samples_is_a_gap_and_an_idle_one_is_zero() -> None:
    counted = {10: Bucket(into=0, out=80, covered_s=10), 30: Bucket(8, 8, 2)}
    assert points(counted, [0, 10, 20, 30]) == [(0, None, None), (10, 0, 8), (20, None, None), (30, 4, 4)]
