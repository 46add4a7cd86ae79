"""The log of the storm: one file with every order, response and fault, and their times."""

import threading
import time
from pathlib import Path


class Timeline:
    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w")
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self.path = path

    def begin(self) -> None:
        """Start the clock. All times in the log count from now on."""
        self._began = time.monotonic()

    @property
    def now_s(self) -> float:
        return time.monotonic() - self._began

    def note(self, what: str) -> None:
        with self._lock:
            self._file.write(f"{self.now_s:8.2f} {what}\n")
            self._file.flush()

    def close(self) -> None:
        self._file.close()
