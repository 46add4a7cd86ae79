"""The times when a delivery is tried again, and the pauses of an address that does not answer."""

from collections.abc import Callable
from datetime import datetime, timedelta

from portal.core.backoff import backoff

# Standard Webhooks' own recommendation: 10 tries over 75 hours, the first at once.
WAITS = tuple(
    timedelta(seconds=seconds)
    for seconds in (5, 300, 1800, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600)
)
TRIES = len(WAITS) + 1
# Each wait is up to so much shorter or longer: what failed together does not come back together.
JITTER = 0.1
_FIRST_REST = timedelta(seconds=5)
_LONGEST_REST = timedelta(minutes=5)
_NOTHING = timedelta(0)


def next_try(
    tries: int, *, now: datetime, draw: Callable[[], float], asked: timedelta = _NOTHING
) -> datetime | None:
    """The time to try again after ``tries`` that failed; None: not any more. ``draw`` gives 0 to 1.

    ``asked``: how long the receiver wants to be left alone; that makes a wait longer and never shorter.
    """
    if tries >= TRIES:
        return None
    factor: float = 1 + JITTER * (2 * draw() - 1)
    return now + max(WAITS[tries - 1] * factor, asked)


def cooldown_until(failures: int, *, now: datetime, asked: timedelta = _NOTHING) -> datetime:
    """Until when an address whose last ``failures`` tries all failed is not asked, whatever waits for it."""
    return now + max(backoff(failures - 1, first=_FIRST_REST, longest=_LONGEST_REST), asked)
