"""Whether a figure of the simulation grows, and how certain that is."""

import random

import pytest

from drills.scale.slopes import slope


def test_a_straight_line_has_its_slope_and_no_error() -> None:
    found = slope([(t, 5 + t / 3600) for t in range(0, 600, 10)])
    assert found is not None
    assert (found.per_hour, found.error) == (pytest.approx(1), pytest.approx(0, abs=1e-9))
    assert not found.is_zero


def test_noise_alone_is_no_growth() -> None:
    dice = random.Random(4)
    found = slope([(t, dice.gauss(100, 5)) for t in range(0, 600, 10)])
    assert found is not None
    assert found.is_zero
    # By hand: 5 / sqrt(60 * 30000 s²), per hour.
    assert found.error == pytest.approx(13.4, rel=0.2)


def test_two_samples_have_no_slope() -> None:
    assert slope([(0, 1), (10, 2)]) is None
