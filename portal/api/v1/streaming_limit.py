"""One long answer per process at a time: each has a thread until its reader has all of it."""

import weakref
from collections.abc import Iterator
from threading import BoundedSemaphore
from typing import Self

from rest_framework import status
from rest_framework.exceptions import APIException

RETRY_AFTER_S = 10
_slot = BoundedSemaphore()


class AnotherIsRunning(APIException):
    status_code = status.HTTP_429_TOO_MANY_REQUESTS
    default_code = "export_running"
    default_detail = (
        "Another export is being sent, and there is one at a time; nothing was done. "
        f"Ask again in {RETRY_AFTER_S} seconds."
    )
    wait = RETRY_AFTER_S


class _Alone(Iterator[str]):
    """The lines, with the slot until they end, or until ``close``: Django calls it when the reader leaves.

    A generator that was never begun would not notice that. Where an answer is lost before anybody can close
    it, the slot is free as soon as it is forgotten.
    """

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.close = weakref.finalize(self, _slot.release)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        try:
            return next(self._lines)
        except Exception:
            self.close()
            raise


def alone(lines: Iterator[str]) -> Iterator[str]:
    """The same lines, while no others are under way in this process. Raises AnotherIsRunning."""
    if not _slot.acquire(blocking=False):
        raise AnotherIsRunning
    return _Alone(lines)
