"""The error of a slope distinguishes growth from chance."""

import random

from drills.soak.slopes import slope

MINUTES = [60.0 * n for n in range(60)]


def test_a_straight_line_has_its_slope_without_an_error() -> None:
    found = slope(MINUTES, [100 + at / 3600 * 5 for at in MINUTES])
    assert round(found.per_hour, 6) == 5
    assert found.error < 1e-6
    assert found.rises


def test_noise_does_not_rise_and_a_small_leak_does() -> None:
    chance = random.Random(1)
    noise = [chance.gauss(100, 1) for _ in MINUTES]
    assert not slope(MINUTES, noise).rises
    assert slope(MINUTES, [value + at / 3600 * 4 for at, value in zip(MINUTES, noise, strict=True)]).rises


def test_a_falling_series_does_not_rise() -> None:
    assert not slope(MINUTES, [100 - at / 60 for at in MINUTES]).rises
