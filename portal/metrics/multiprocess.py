"""The storage of this process's counters: files, which the metrics process of the machine adds up.

prometheus_client keeps the counters of a process in a file that is named after the process. If the name
contained the pid, each restart would leave files behind, and deleting a file would reduce the sums. A process
therefore takes the lowest free number (slot), and continues the counters of the process that had it before.
"""

import fcntl
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.conf import settings
from prometheus_client import CollectorRegistry, values
from prometheus_client.values import MultiProcessValue


class NoSlot(Exception):
    """The folder cannot be used. The text names the folder and the reason."""


@dataclass(frozen=True, slots=True)
class _Slot:
    number: int
    owner: int
    # The slot stays locked as long as the owner has this file open.
    lock: IO[bytes]


class Slots:
    """The slots of one folder. The kernel frees a slot when its process ends for any reason."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own: _Slot | None = None

    def of_this_process(self) -> int:
        """Return the number of this process's slot, from 0. After a fork, the child takes another slot.

        Raises NoSlot.
        """
        if self._own is None or self._own.owner != os.getpid():
            if self._own is not None:
                # This closes only the child's copy of the file. The parent keeps its lock.
                self._own.lock.close()
            self._own = self._take()
        return self._own.number

    def _take(self) -> _Slot:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            number = 0
            while (lock := self._lock(number)) is None:
                number += 1
        except OSError as error:
            raise NoSlot(f"LONGLINE_METRICS_DIR {self._folder} cannot be used: {error}") from error
        return _Slot(number, os.getpid(), lock)

    def _lock(self, number: int) -> IO[bytes] | None:
        lock = (self._folder / f"slot-{number}").open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        return lock


# Use a separate registry. prometheus_client's default registry also contains metrics of Python itself, which
# would be added up over all processes.
REGISTRY = CollectorRegistry()

# No slot has this number.
_NOBODY = -1


def _when_counting(slot: Callable[[], int]) -> Callable[[], int]:
    """Return a function that does not take a slot before the first value is counted.

    prometheus_client calls the function once while this module is imported. That call takes no slot. A
    process that never counts, such as a command, therefore takes no slot.
    """
    called_before = False

    def number() -> int:
        nonlocal called_before
        if not called_before:
            called_before = True
            return _NOBODY
        return slot()

    return number


if settings.LONGLINE_METRICS_DIR:
    # prometheus_client reads this variable each time it opens a file.
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = settings.LONGLINE_METRICS_DIR
    slots = Slots(Path(settings.LONGLINE_METRICS_DIR))
    values.ValueClass = MultiProcessValue(_when_counting(slots.of_this_process))
