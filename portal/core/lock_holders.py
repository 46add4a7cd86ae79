"""The sessions that block another session of PostgreSQL.

The blocking sessions are read while the other session waits, because PostgreSQL does not show them
afterwards.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Self

import psycopg

_EVERY_S = 0.1
_QUERY_SHOWN = 80
# LEFT JOIN, because a prepared transaction has no process: pg_blocking_pids returns 0, and pg_stat_activity
# has no row.
_HOLDERS = """
SELECT holder.pid, coalesce(nullif(application_name, ''), backend_type), usename, host(client_addr), state,
       extract(epoch FROM clock_timestamp() - xact_start), query
  FROM unnest(pg_blocking_pids(%s)) AS holder(pid) LEFT JOIN pg_stat_activity USING (pid)
 ORDER BY xact_start
"""


@dataclass(frozen=True, slots=True)
class Holder:
    """A blocking session, from pg_stat_activity. Columns that the database user may not read are None."""

    pid: int
    program: str | None
    user: str | None
    address: str | None
    state: str | None
    open_s: float | None
    query: str | None

    def __str__(self) -> str:
        if not self.pid:
            return "a prepared transaction (see pg_prepared_xacts)"
        facts = [
            self.program,
            self.user and f"user {self.user}",
            self.address and f"from {self.address}",
            self.open_s is not None and f"transaction open for {self.open_s:.0f} s",
            self.state,
        ]
        query = " ".join((self.query or "").split())[:_QUERY_SHOWN]
        return f"process {self.pid} ({', '.join(fact for fact in facts if fact)}): {query}".rstrip(": ")


class LockHolders:
    """A context manager that watches one session with a thread and another connection.

    ``report`` is called with a description of the blocking sessions. It is called once for each wait that
    lasts longer than ``after_s`` seconds.
    """

    def __init__(
        self,
        connection: psycopg.Connection,
        *,
        waiting_pid: int,
        after_s: float,
        report: Callable[[str], None],
    ) -> None:
        self._connection = connection
        self._waiting_pid = waiting_pid
        self._after_s = after_s
        self._report = report
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="lock-holders", daemon=True)
        self._last: list[Holder] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def last(self) -> str:
        """Return a description of the sessions that blocked the watched session most recently."""
        return "; ".join(map(str, self._last)) or "a session that was gone before it could be read"

    def _watch(self) -> None:
        since: float | None = None
        while not self._stop.wait(_EVERY_S):
            rows = self._connection.execute(_HOLDERS, [self._waiting_pid]).fetchall()
            if not rows:
                since = None
                continue
            self._last = [Holder(*row) for row in rows]
            if since is None:
                since = monotonic()
            elif monotonic() - since >= self._after_s:
                self._report(self.last)
                since = float("inf")
