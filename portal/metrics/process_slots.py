"""Numbers (slots) for processes. A new process takes the lowest free number.

prometheus_client keeps the counters of a process in a file that is named after the process. If the name
contained the pid, each restart would leave files behind, and deleting a file would reduce the sums. With
slots, a new process continues the counters of the process that had the slot before.
"""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO


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
