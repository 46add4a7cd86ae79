"""The age of the oldest waiting row."""

from datetime import datetime


def age_s(oldest: datetime | None, *, now: datetime) -> float:
    """Return the age in seconds; 0 without a row, or if another machine's clock is ahead of the local
    clock.
    """
    return 0.0 if oldest is None else max(0.0, (now - oldest).total_seconds())
