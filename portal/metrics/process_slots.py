"""Numbers for processes. A new process takes the lowest free number.

prometheus_client keeps a process's counters in a file named after the process. Files named by pid would pile
up with every restart, and deleting one would reduce the sums. With files named by slot, a process continues
the counters of the previous process in that slot.
"""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO


class NoSlot(Exception):
    """The folder is not writable. The text names the folder and the reason."""


@dataclass(frozen=True, slots=True)
class _Slot:
    number: int
    owner: int
    # The lock lasts as long as this file is open in the owner.
    lock: IO[bytes]


class Slots:
    """The slots of one folder. The kernel frees a slot when its process ends, for any reason."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own: _Slot | None = None

    def of_this_process(self) -> int:
        """Return this process's slot, from 0. After a fork the child has its own slot. Raises NoSlot."""
        if self._own is None or self._own.owner != os.getpid():
            if self._own is not None:
                # Close only this process's copy of the file: the parent keeps its lock.
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
