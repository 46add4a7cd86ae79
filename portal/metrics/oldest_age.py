"""The age of the oldest waiting row."""

from datetime import datetime


def age_s(oldest: datetime | None, *, now: datetime) -> float:
    """Return the age of the oldest row in seconds. It is 0 if there is no row.

    It is also 0 if the row's time is in the future, because the clock of the machine that wrote it is ahead.
    """
    return 0.0 if oldest is None else max(0.0, (now - oldest).total_seconds())
