"""Limit the long responses per process: each occupies a thread until the client has received it.

Each customer can have one at a time, so that its exports do not delay the exports of others.
"""

import weakref
from collections.abc import Collection, Iterable, Iterator
from threading import RLock
from typing import Self

from django.http import StreamingHttpResponse
from rest_framework import status
from rest_framework.exceptions import APIException
from rest_framework.renderers import JSONRenderer

from portal.accounts.models import User
from portal.core.plain_text import csv_lines

RETRY_AFTER_S = 10
# A process has four threads (portal.processes.gunicorn_web). Two of them remain for short responses.
MOST = 2
# Re-entrant: the garbage collector may end a lost response in the thread that has the lock.
_lock = RLock()
# For each export that is being sent, its owners.
_under_way: list[frozenset[str]] = []


class AnotherIsRunning(APIException):
    status_code = status.HTTP_429_TOO_MANY_REQUESTS
    default_code = "export_running"
    default_detail = (
        "Another export is being sent, and only a few are sent at a time; nothing was done. "
        f"Try again in {RETRY_AFTER_S} seconds."
    )
    wait = RETRY_AFTER_S


class _Limited(Iterator[str]):
    """The lines of text of a response. They occupy a slot until the last line is read or ``close`` is called.

    Django calls ``close`` at the end of the response, even if the client disconnects. This class is not a
    generator: a generator that is closed before its first line never runs its cleanup. If a response is lost
    and nobody closes it, garbage collection frees the slot.
    """

    def __init__(self, lines: Iterator[str], owners: frozenset[str]) -> None:
        self._lines = lines
        self.close = weakref.finalize(self, _end, owners)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        try:
            return next(self._lines)
        except Exception:
            self.close()
            raise


def limited(lines: Iterator[str], *, owners: Collection[str]) -> Iterator[str]:
    """Return the same lines of text. They occupy one of the process's slots until the last line was sent.

    Raises AnotherIsRunning if all slots are in use, or if one of the owners already has a slot.
    """
    mine = frozenset(owners)
    with _lock:
        if len(_under_way) >= MOST or any(mine & others for others in tuple(_under_way)):
            raise AnotherIsRunning
        _under_way.append(mine)
    return _Limited(lines, mine)


def owners_of(user: User) -> set[str]:
    """Return the owners of the user's exports: the customers of the user, or the NOC for NOC staff.

    An export of a user without a customer belongs to the user.
    """
    if user.is_noc:
        return {"noc"}
    members = user.memberships.values_list("customer", flat=True)
    return {f"customer {customer}" for customer in members} or {f"user {user.pk}"}


def _end(owners: frozenset[str]) -> None:
    with _lock:
        _under_way.remove(owners)


class CsvRenderer(JSONRenderer):
    """A renderer that lets clients request text/csv. It renders only problem documents, as JSON."""

    media_type = "text/csv"
    format = "csv"


def csv_response(
    name: str, rows: Iterable[Iterable[object]], *, unbounded_for: Collection[str] = ()
) -> StreamingHttpResponse:
    """Return a response with a CSV file of this name. Each row is sent as soon as it is read.

    If the number of rows has no limit, ``unbounded_for`` contains the owners of the response (see
    ``owners_of``). A process sends only a few such responses at a time. Raises AnotherIsRunning.
    """
    lines = csv_lines(rows)
    return StreamingHttpResponse(
        limited(lines, owners=unbounded_for) if unbounded_for else lines,
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
