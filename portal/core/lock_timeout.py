"""How long a migration's statements wait for a lock (PostgreSQL's lock_timeout)."""

from collections.abc import Callable
from time import monotonic
from typing import Any

from django.db import connection

_SET = "SELECT set_config('lock_timeout', %s, false)"


class LockPatience:
    """Little, because whoever comes later waits behind the one who waits; until the end where nobody does.

    Wraps the statements of Django's connection (``connection.execute_wrapper``). What runs CONCURRENTLY locks
    out no reader and no writer, but waits for every older transaction: a backup, say.
    """

    def __init__(self, *, usual_s: float, concurrently_until: float) -> None:
        """``concurrently_until`` is of ``time.monotonic``."""
        self._usual_s = usual_s
        self._concurrently_until = concurrently_until

    def begin(self) -> int:
        """Set it for Django's connection, until that closes; the process of PostgreSQL that serves it."""
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
    # 0 would be for ever.
    return f"{max(1, round(seconds * 1000))}ms"
