"""Pauses after repeated failures."""

from datetime import timedelta


def backoff(failures: int, *, first: timedelta, longest: timedelta) -> timedelta:
    """Return the pause after a failure: ``first``, doubled for each of the ``failures`` before it.

    The pause is never longer than ``longest``. ``failures`` is 0 or more.
    """
    enough: int = (longest // first).bit_length()
    return min(first * (1 << min(failures, enough)), longest)
