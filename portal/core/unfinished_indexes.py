"""Indexes that a migration began to create CONCURRENTLY (outside any transaction) and did not finish."""

import re
from collections.abc import Iterable, Iterator

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import connection
from django.db.migrations import RunSQL, SeparateDatabaseAndState
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.operations.base import Operation

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
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relkind = 'i' AND relname = ANY(%s)", [wanted])
        left = [name for (name,) in cursor.fetchall()]
        for name in left:
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {connection.ops.quote_name(name)}")
    return left


def invalid_indexes() -> list[str]:
    """Return the names of invalid indexes. They make writes slower, and no query uses them."""
    with connection.cursor() as cursor:
        cursor.execute(_INVALID)
        return [name for (name,) in cursor.fetchall()]


def _made_concurrently(operations: Iterable[Operation]) -> Iterator[str]:
    for operation in operations:
        if isinstance(operation, AddIndexConcurrently):
            yield operation.index.name
        elif isinstance(operation, SeparateDatabaseAndState):
            yield from _made_concurrently(operation.database_operations)
        elif isinstance(operation, RunSQL):
            yield from _IN_SQL.findall(str(operation.sql))
