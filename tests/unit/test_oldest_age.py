from datetime import UTC, datetime, timedelta

from portal.metrics.oldest_age import age_s

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_what_waits_is_as_old_as_its_oldest() -> None:
    assert age_s(NOW - timedelta(minutes=2), now=NOW) == 120


def test_nothing_has_no_age() -> None:
    assert age_s(None, now=NOW) == 0


def test_a_clock_that_is_ahead_makes_nothing_younger_than_now() -> None:
    assert age_s(NOW + timedelta(seconds=3), now=NOW) == 0
