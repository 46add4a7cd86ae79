"""A loop of background work over rows, or over parts of a task: a failed row does not stop the others."""

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

from django.db import Error, connection

log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")


def each_row(rows: Iterable[T], do: Callable[[T], R], *, what: str) -> list[R]:
    """Return ``do(row)`` of every row that succeeds; then raise all failures as one ExceptionGroup.

    ``do`` runs in a separate transaction, so a failed row leaves nothing behind. ``what`` names the work in
    the log and in the error. A lost database connection ends the loop: all further rows would fail too.
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
