"""Few long answers per process at a time: each has a thread until its reader has all of it.

One is of the same customer at most, so that nobody's exports keep those of all others waiting.
"""

import weakref
from collections.abc import Collection, Iterator
from threading import RLock
from typing import Self

from rest_framework import status
from rest_framework.exceptions import APIException

from portal.accounts.models import User

RETRY_AFTER_S = 10
# Of the threads of a process (portal.processes.gunicorn_web), half are for short answers.
MOST = 2
# The garbage collector may end a lost answer while this thread begins another one.
_lock = RLock()
# Whose exports are under way: each has a set of owners of its own.
_under_way: list[frozenset[str]] = []


class AnotherIsRunning(APIException):
    status_code = status.HTTP_429_TOO_MANY_REQUESTS
    default_code = "export_running"
    default_detail = (
        "Another export is being sent, and only a few are sent at a time; nothing was done. "
        f"Ask again in {RETRY_AFTER_S} seconds."
    )
    wait = RETRY_AFTER_S


class _Limited(Iterator[str]):
    """The lines, with a slot until they end, or until ``close``: Django calls it when the reader leaves.

    A generator that was never begun would not notice that. Where an answer is lost before anybody can close
    it, the slot is free as soon as it is forgotten.
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
    """Return the same lines, unless too many are under way in this process, or others of any of these owners.

    Raises AnotherIsRunning.
    """
    mine = frozenset(owners)
    with _lock:
        if len(_under_way) >= MOST or any(mine & others for others in tuple(_under_way)):
            raise AnotherIsRunning
        _under_way.append(mine)
    return _Limited(lines, mine)


def owners_of(user: User) -> set[str]:
    """Whose exports those of this user are: of the customers that the user is a member of, or of the NOC."""
    if user.is_noc:
        return {"noc"}
    members = user.memberships.values_list("customer", flat=True)
    return {f"customer {customer}" for customer in members} or {f"user {user.pk}"}


def _end(owners: frozenset[str]) -> None:
    with _lock:
        _under_way.remove(owners)
