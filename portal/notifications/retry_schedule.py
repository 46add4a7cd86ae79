"""The times of a delivery's attempts, and the pauses of a webhook whose receiver does not respond."""

from collections.abc import Callable
from datetime import datetime, timedelta

from portal.core.backoff import backoff

# The waits before attempts 2 to 10, over 75 hours, as Standard Webhooks recommends. Attempt 1 is immediate.
WAITS = tuple(
    timedelta(seconds=seconds)
    for seconds in (5, 300, 1800, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600)
)
TRIES = len(WAITS) + 1
# Each wait varies randomly by up to this fraction, so that deliveries that failed together are not retried
# together.
JITTER = 0.1
_FIRST_PAUSE = timedelta(seconds=5)
_LONGEST_PAUSE = timedelta(minutes=5)
_NOTHING = timedelta(0)


def next_try(
    tries: int, *, now: datetime, draw: Callable[[], float], requested: timedelta = _NOTHING
) -> datetime | None:
    """Return the time of the next attempt; None if no attempt is left.

    ``tries``: the number of failed attempts so far. ``draw``: a function that returns a random number from 0
    to 1. ``requested``: the pause that the receiver requested. It can only lengthen the wait.
    """
    if tries >= TRIES:
        return None
    factor: float = 1 + JITTER * (2 * draw() - 1)
    return now + max(WAITS[tries - 1] * factor, requested)


def cooldown_until(failures: int, *, now: datetime, requested: timedelta = _NOTHING) -> datetime:
    """Return the end of a webhook's pause after ``failures`` consecutive failed attempts.

    ``requested``: the pause that the receiver requested. It can only lengthen the pause.
    """
    return now + max(backoff(failures - 1, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE), requested)
