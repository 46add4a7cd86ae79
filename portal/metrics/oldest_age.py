"""The age of the oldest row that waits."""

from datetime import datetime


def age_s(oldest: datetime | None, *, now: datetime) -> float:
    """In seconds; 0 without any, and while another machine's clock is ahead of ours."""
    return 0.0 if oldest is None else max(0.0, (now - oldest).total_seconds())
