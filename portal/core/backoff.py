"""The pauses after failures."""

from datetime import timedelta


def backoff(failures: int, *, first: timedelta, longest: timedelta) -> timedelta:
    """The wait after a failure that ``failures`` others came before: ``first``, doubled for each of them.

    Never more than ``longest``, whatever the number; ``failures`` is 0 or more.
    """
    enough: int = (longest // first).bit_length()
    return min(first * (1 << min(failures, enough)), longest)
