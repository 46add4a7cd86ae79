from datetime import UTC, datetime, timedelta

from portal.metrics.families import age_s

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_the_age_is_that_of_the_oldest() -> None:
    assert age_s(NOW - timedelta(minutes=2), now=NOW) == 120


def test_an_empty_queue_has_no_age() -> None:
    assert age_s(None, now=NOW) == 0


def test_a_fast_clock_gives_no_negative_age() -> None:
    assert age_s(NOW + timedelta(seconds=3), now=NOW) == 0
