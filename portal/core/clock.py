"""The current time, and times as seconds since 1970."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_ms(at: datetime) -> int:
    return (at - EPOCH) // timedelta(milliseconds=1)


def to_time(ms: int) -> datetime:
    """Return the time (UTC) at ``ms`` after the epoch. Raises OverflowError outside datetime's range."""
    return EPOCH + timedelta(milliseconds=ms)


def now() -> datetime:
    """Return the current time as an aware datetime in UTC."""
    return datetime.now(tz=UTC)
