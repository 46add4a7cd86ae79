"""A checker that never looks away while a fault is going on."""

import threading
from types import TracebackType
from typing import Self

import psycopg

from drills.checks.checker import Checker
from drills.checks.vpptestctl import VppRefused

EVERY_S = 0.3


class Watch:
    """Looks again and again, until the block ends; then fails if it ever saw a violation.

    A look while PostgreSQL or a VPP is away sees nothing and does not count.
    """

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.looks = 0
        self.seen: list[str] = []
        self._error: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        if kind is None:
            if self._error is not None:
                raise self._error
            assert not self.seen, "; ".join(self.seen[:10])
            assert self.looks, "the watch never got to look"

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            try:
                self.seen += self._checker.violations()
            except (psycopg.OperationalError, VppRefused):
                continue
            except Exception as error:
                self._error = error
                return
            self.looks += 1
