"""A loop for background work over rows or parts of a task. A row that fails does not stop the others."""

import logging
from collections.abc import Callable, Iterable
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
