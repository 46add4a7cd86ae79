"""Maintenance of the database after the simulation: the durations of regular tasks, and unused indexes."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg

# The largest tables.
_TABLES = """
SELECT oid::regclass::text, reltuples::bigint, pg_total_relation_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
ORDER BY pg_total_relation_size(oid) DESC LIMIT 12
"""
# The unused indexes. Unique indexes and the indexes of constraints are left out, because they enforce rules.
_UNUSED = """
SELECT used.relname, used.indexrelname, pg_relation_size(used.indexrelid), definition.indexdef,
       EXISTS (SELECT FROM pg_constraint AS reference
               WHERE reference.conrelid = used.relid AND reference.contype = 'f'
                 AND reference.conkey[1] = index.indkey[0] AND array_length(reference.conkey, 1) = 1)
FROM pg_stat_user_indexes AS used JOIN pg_index AS index USING (indexrelid)
JOIN pg_indexes AS definition ON definition.indexname = used.indexrelname
WHERE used.idx_scan = 0 AND NOT index.indisunique AND NOT index.indisexclusion
  AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = used.indexrelid)
ORDER BY pg_relation_size(used.indexrelid) DESC, 2
"""


def figures(database_url: str) -> Iterator[str]:
    with psycopg.connect(database_url, autocommit=True) as database:
        yield from _indexes(database)
        for name, rows, size in database.execute(_TABLES).fetchall():
            began = time.perf_counter()
            database.execute(f"VACUUM (ANALYZE) {name}")
            took = time.perf_counter() - began
            yield f"scale vacuum {name}: {took:.2f} s ({rows} rows, {size / 1e6:.0f} MB)"
        yield from _regular_work()
        yield from _drops(database)


def _indexes(database: psycopg.Connection) -> Iterator[str]:
    for table, index, size, definition, refers in database.execute(_UNUSED).fetchall():
        kind = "foreign key" if refers else "no foreign key"
        yield f"scale unused_index {index} of {table}: {size / 1024:.0f} kB, {kind}\n#   {definition}"


def _regular_work() -> Iterator[str]:
    from portal.alarms.rounds import alarms_watch
    from portal.core import clock
    from portal.telemetry.oper_status import stale_vlls_mark
    from portal.telemetry.partitioned_tables import partitions_keep
    from portal.telemetry.rollups import roll_up
    from portal.vll.operations.paths import tunnel_paths_keep

    at = clock.now()
    work: dict[str, Callable[[], object]] = {
        "roll_up": lambda: roll_up(now=at),
        "partitions_keep": lambda: partitions_keep(now=at),
        "alarms_watch": lambda: alarms_watch(now=at),
        "stale_vlls_mark": lambda: stale_vlls_mark(now=at),
        "tunnel_paths_keep": lambda: tunnel_paths_keep(now=at),
        # As if four days had passed: all samples are older than the time for which they are kept.
        "partitions_keep, a day goes": lambda: partitions_keep(now=at + timedelta(days=4)),
    }
    for name, do in work.items():
        began = time.perf_counter()
        done = do()
        yield f"scale work {name}: {time.perf_counter() - began:.2f} s ({done})"


def _drops(database: psycopg.Connection) -> Iterator[str]:
    """Drop the largest remaining partition of samples, if there is one, and yield the duration."""
    left = database.execute(
        "SELECT inhrelid::regclass::text, pg_total_relation_size(inhrelid) FROM pg_inherits"
        " WHERE inhparent = 'telemetry_sample'::regclass ORDER BY 2 DESC LIMIT 1"
    ).fetchone()
    if left is not None:
        name, size = left
        began = time.perf_counter()
        database.execute(f"DROP TABLE {name}")
        yield f"scale work drop of {name}: {time.perf_counter() - began:.2f} s ({size / 1e6:.0f} MB)"
