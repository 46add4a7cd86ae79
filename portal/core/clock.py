"""The only place that reads wall-clock time; operations take ``now`` as a keyword."""

from datetime import UTC, datetime


def now() -> datetime:
    """Return the current time as an aware datetime in UTC."""
    return datetime.now(tz=UTC)
