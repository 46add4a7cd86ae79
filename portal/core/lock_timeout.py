"""The time that a statement of a migration waits for a lock (PostgreSQL's lock_timeout)."""

from collections.abc import Callable
from time import monotonic
from typing import Any

from django.db import connection

_SET = "SELECT set_config('lock_timeout', %s, false)"


class LockPatience:
    """A wrapper for statements (``connection.execute_wrapper``) that sets lock_timeout.

    Most statements get a short timeout, because other statements on the table queue behind a statement that
    waits for a lock. Statements with CONCURRENTLY do not block readers or writers. But they wait for all
    older transactions, such as a backup, and may therefore wait until ``concurrently_until``.
    """

    def __init__(self, *, usual_s: float, concurrently_until: float) -> None:
        """Set the usual timeout (s), and the deadline for CONCURRENTLY (a value of ``time.monotonic``)."""
        self._usual_s = usual_s
        self._concurrently_until = concurrently_until

    def begin(self) -> int:
        """Set the usual timeout for the session of Django's connection.

        Return the process id of that session in PostgreSQL.
        """
        with connection.cursor() as cursor:
            cursor.execute(_SET, [_milliseconds(self._usual_s)])
            cursor.execute("SELECT pg_backend_pid()")
            [pid] = cursor.fetchone()
        return int(pid)

    def __call__(
        self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        if connection.in_atomic_block or "CONCURRENTLY" not in str(sql).upper():
            return execute(sql, params, many, context)
        left_s = max(self._usual_s, self._concurrently_until - monotonic())
        execute(_SET, [_milliseconds(left_s)], False, context)
        try:
            return execute(sql, params, many, context)
        finally:
            execute(_SET, [_milliseconds(self._usual_s)], False, context)


def _milliseconds(seconds: float) -> str:
    # 0 would disable the timeout.
    return f"{max(1, round(seconds * 1000))}ms"
