"""The one place where wall-clock time is read; operations take ``now`` as a keyword."""

from datetime import UTC, datetime


def now() -> datetime:
    """The current time, aware, in UTC."""
    return datetime.now(tz=UTC)
