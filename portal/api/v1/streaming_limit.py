"""The limit of long responses per process. Each needs a thread until its client has received all of it.

Each customer can have one at a time, because one customer's exports must not delay those of the others.
"""

import weakref
from collections.abc import Collection, Iterator
from threading import RLock
from typing import Self

from rest_framework import status
from rest_framework.exceptions import APIException

from portal.accounts.models import User

RETRY_AFTER_S = 10
# The other half of a process's threads (portal.processes.gunicorn_web) is for short responses.
MOST = 2
# Re-entrant, because the garbage collector may end a lost response while this thread begins another one.
_lock = RLock()
# The owners of each export under way.
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
    """Lines that occupy a slot until they end or until ``close``. Django calls it if the client disconnects.

    A generator would not run its cleanup if it was closed before its first line. If a response is lost and
    nobody closes it, the slot becomes free when the object is garbage-collected.
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
    """Return the same lines, with a slot of this process.

    Raises AnotherIsRunning if all slots are in use, or if one of the owners already has one.
    """
    mine = frozenset(owners)
    with _lock:
        if len(_under_way) >= MOST or any(mine & others for others in tuple(_under_way)):
            raise AnotherIsRunning
        _under_way.append(mine)
    return _Limited(lines, mine)


def owners_of(user: User) -> set[str]:
    """Return the owners of the user's exports: the customers that the user is a member of, or the NOC."""
    if user.is_noc:
        return {"noc"}
    members = user.memberships.values_list("customer", flat=True)
    return {f"customer {customer}" for customer in members} or {f"user {user.pk}"}


def _end(owners: frozenset[str]) -> None:
    with _lock:
        _under_way.remove(owners)
