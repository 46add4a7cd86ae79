"""A checker that keeps checking while a fault is in progress."""

import threading
from types import TracebackType
from typing import Self

import psycopg

from drills.checks.checker import Checker
from drills.checks.vpptestctl import VppRefused

EVERY_S = 0.3


class Watch:
    """Check repeatedly until the block ends; then fail if any check found a violation.

    A check while PostgreSQL or a VPP is away fails, and does not count.
    """

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.checks = 0
        self.violations: list[str] = []
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
            assert not self.violations, "; ".join(self.violations[:10])
            assert self.checks, "no check succeeded"

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            try:
                self.violations += self._checker.violations()
            except (psycopg.OperationalError, VppRefused):
                continue
            except Exception as error:
                self._error = error
                return
            self.checks += 1
