"""Migrations: the SQL that Django cannot express, and the locks of migrations.

The files in ``portal/<app>/sql/`` contain functions, triggers, partitioned tables and indexes of expressions.
For locks, there is a timeout, a list of the processes that hold a lock, and a list of unfinished indexes.
"""

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Self

import psycopg
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import connection
from django.db.migrations import RunSQL, SeparateDatabaseAndState
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.operations.base import Operation

from portal.core.db.statements import execute, rows_of

_PORTAL = Path(__file__).resolve().parents[2]


def run_sql(app: str, name: str) -> RunSQL:
    """Return a migration operation that runs ``portal/<app>/sql/<name>.sql``.

    The operation cannot be reversed. To go back, restore a backup.
    """
    return RunSQL((_PORTAL / app / "sql" / f"{name}.sql").read_text(encoding="utf-8"))


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


@dataclass
class LockHolders:
    """A context manager that watches one session with a thread and another connection.

    ``report`` is called with a description of the blocking sessions. It is called once for each wait that
    lasts longer than ``after_s`` seconds.
    """

    connection: psycopg.Connection
    waiting_pid: int
    after_s: float
    report: Callable[[str], None]
    _stop: threading.Event = field(init=False, default_factory=threading.Event)
    _last: list[Holder] = field(init=False, default_factory=list)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, name="lock-holders", daemon=True)
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
            rows = self.connection.execute(_HOLDERS, [self.waiting_pid]).fetchall()
            if not rows:
                since = None
                continue
            self._last = [Holder(*row) for row in rows]
            if since is None:
                since = monotonic()
            elif monotonic() - since >= self.after_s:
                self.report(self.last)
                since = float("inf")


_SET = "SELECT set_config('lock_timeout', %s, false)"


@dataclass(frozen=True, kw_only=True)
class LockPatience:
    """A wrapper for statements (``connection.execute_wrapper``) that sets lock_timeout.

    Most statements get a short timeout, because other statements on the table queue behind a statement that
    waits for a lock. Statements with CONCURRENTLY do not block readers or writers. But they wait for all
    older transactions, such as a backup, and may therefore wait until ``concurrently_until``, a value of
    ``time.monotonic``. ``usual_s``: the usual timeout in seconds.
    """

    usual_s: float
    concurrently_until: float

    def begin(self) -> int:
        """Set the usual timeout for the session of Django's connection.

        Return the process id of that session in PostgreSQL.
        """
        execute(_SET, [_milliseconds(self.usual_s)])
        [(pid,)] = rows_of("SELECT pg_backend_pid()")
        return int(pid)

    def __call__(
        self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        if connection.in_atomic_block or "CONCURRENTLY" not in str(sql).upper():
            return execute(sql, params, many, context)
        left_s = max(self.usual_s, self.concurrently_until - monotonic())
        execute(_SET, [_milliseconds(left_s)], False, context)
        try:
            return execute(sql, params, many, context)
        finally:
            execute(_SET, [_milliseconds(self.usual_s)], False, context)


def _milliseconds(seconds: float) -> str:
    # 0 would disable the timeout.
    return f"{max(1, round(seconds * 1000))}ms"


_IN_SQL = re.compile(
    r'CREATE\s+(?:UNIQUE\s+)?INDEX\s+CONCURRENTLY\s+(?:IF\s+NOT\s+EXISTS\s+)?"?(\w+)', re.IGNORECASE
)
# Indexes that are being created now are also invalid, so they are excluded.
_INVALID = """
SELECT indexrelid::regclass::text FROM pg_index
 WHERE NOT indisvalid AND indexrelid NOT IN (SELECT index_relid FROM pg_stat_progress_create_index)
 ORDER BY 1
"""


def unfinished_indexes_drop() -> list[str]:
    """Drop indexes that an earlier, failed run of pending migrations left behind. Return their names.

    While these indexes exist, the migrations cannot run again. PostgreSQL keeps an index that it could not
    finish. A finished index also remains if its migration failed before it was recorded.
    """
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    wanted = [name for migration, _ in plan for name in _made_concurrently(migration.operations)]
    statement = "SELECT relname FROM pg_class WHERE relkind = 'i' AND relname = ANY(%s)"
    left = [name for (name,) in rows_of(statement, [wanted])]
    for name in left:
        execute(f"DROP INDEX CONCURRENTLY IF EXISTS {connection.ops.quote_name(name)}")
    return left


def invalid_indexes() -> list[str]:
    """Return the names of invalid indexes. They make writes slower, and no query uses them."""
    return [name for (name,) in rows_of(_INVALID)]


def _made_concurrently(operations: Iterable[Operation]) -> Iterator[str]:
    for operation in operations:
        if isinstance(operation, AddIndexConcurrently):
            yield operation.index.name
        elif isinstance(operation, SeparateDatabaseAndState):
            yield from _made_concurrently(operation.database_operations)
        elif isinstance(operation, RunSQL):
            yield from _IN_SQL.findall(str(operation.sql))
