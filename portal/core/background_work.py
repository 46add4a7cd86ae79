"""Background work: loops over rows, and pauses after repeated failures."""

import logging
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TypeVar

from django.db import Error, connection

log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")


def each_row(rows: Iterable[T], do: Callable[[T], R], *, what: str) -> list[R]:
    """Return the results of ``do(row)`` for all rows.

    If a row fails, the loop continues. After the last row, the function raises all failures as one
    ExceptionGroup. A lost database connection ends the loop, because all further rows would fail too. ``do``
    should use its own transaction, so that a failed row leaves nothing behind. ``what``: the name of the
    work, for the log and the error.
    """
    done: list[R] = []
    failures: list[Exception] = []
    for row in rows:
        try:
            done.append(do(row))
        except Exception as failure:
            log.exception("%s failed", what, extra={"row": str(row)})
            failures.append(failure)
            if isinstance(failure, Error) and not connection.is_usable():
                break
    if failures:
        raise ExceptionGroup(f"{what} failed for {len(failures)} of {len(done) + len(failures)}", failures)
    return done


def backoff(failures: int, *, first: timedelta, longest: timedelta) -> timedelta:
    """Return the pause after a failure: ``first``, doubled for each earlier failure, but at most ``longest``.

    ``failures``: the number of earlier failures, 0 or more.
    """
    enough: int = (longest // first).bit_length()
    return min(first * (1 << min(failures, enough)), longest)
