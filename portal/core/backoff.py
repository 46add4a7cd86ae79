"""Pauses after repeated failures."""

from datetime import timedelta


def backoff(failures: int, *, first: timedelta, longest: timedelta) -> timedelta:
    """Return the pause after a failure: ``first``, doubled for each earlier failure, but at most ``longest``.

    ``failures``: the number of earlier failures, 0 or more.
    """
    enough: int = (longest // first).bit_length()
    return min(first * (1 << min(failures, enough)), longest)
