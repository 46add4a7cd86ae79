"""Milliseconds since the Unix epoch, the form in which agents write times."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_ms(at: datetime) -> int:
    return (at - EPOCH) // timedelta(milliseconds=1)


def to_time(ms: int) -> datetime:
    """Return the time. Raises OverflowError beyond the calendar."""
    return EPOCH + timedelta(milliseconds=ms)
