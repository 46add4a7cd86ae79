"""Roll-up of losses of routers and interfaces into buckets of 5 minutes, an hour and a day, and queries of
them.

This works as for lines (portal.telemetry.rollups): every stored sample marks its 5-minute bucket as stale,
and a marked bucket is counted again as a whole. Queries do not wait for the roll-up: they count marked
buckets from the samples.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, transaction

from portal.core.db.advisory_locks import AdvisoryLock
from portal.telemetry.partitions import partitions_ensure
from portal.telemetry.reported_counters import LONGEST_SAMPLE
from portal.telemetry.rollup_tables import LOSS_ROLLUPS, Table
from portal.telemetry.rollups import count_marked
from portal.telemetry.router_loss_ingest import COLUMNS, COUNTS

_FIVE_MINUTES = LOSS_ROLLUPS[0]
# The counts of a router, by start of the bucket (epoch s) and interface. A row has the counted milliseconds,
# the columns of router_loss_ingest, and whether any count is simulated.
Rows = dict[tuple[int, str], tuple[Any, ...]]

# Buckets (%(routers)s, %(starts)s) of any length, from samples. The counts of a sample are spread evenly over
# its time.
_FROM_SAMPLES = """
SELECT b.router_id, b.start_at, interface, sum(overlap_ms)::int AS covered_ms, {sums},
       max(buffers) AS buffers, min(buffers_free) AS buffers_free, bool_or(simulated) AS simulated
FROM unnest(%(routers)s::bigint[], %(starts)s::timestamptz[]) AS b (router_id, start_at)
CROSS JOIN LATERAL (
    SELECT *, round(1000 * extract(epoch FROM least(to_at, b.start_at + %(length)s)
                                              - greatest(from_at, b.start_at)))::float8 AS overlap_ms,
           round(1000 * extract(epoch FROM to_at - from_at))::float8 AS length_ms
    FROM telemetry_loss_sample
    WHERE router_id = b.router_id AND from_at < b.start_at + %(length)s AND to_at > b.start_at
      AND to_at <= b.start_at + %(length)s + %(reach)s
) AS s
GROUP BY b.router_id, b.start_at, interface
""".replace("{sums}", ", ".join(f"sum({column} * (overlap_ms / length_ms)) AS {column}" for column in COUNTS))
_FROM_FINER = """
SELECT b.router_id, b.start_at, interface, sum(covered_ms)::int AS covered_ms, {sums},
       max(buffers) AS buffers, min(buffers_free) AS buffers_free, bool_or(simulated) AS simulated
FROM unnest(%(routers)s::bigint[], %(starts)s::timestamptz[]) AS b (router_id, start_at)
JOIN {finer} AS f ON f.router_id = b.router_id AND f.start_at >= b.start_at
                     AND f.start_at < b.start_at + %(length)s
GROUP BY b.router_id, b.start_at, interface
""".replace("{sums}", ", ".join(f"sum({column}) AS {column}" for column in COUNTS))
_STORED = ("covered_ms", *COLUMNS, "simulated")
_UPSERT = """
INSERT INTO {table} (router_id, start_at, interface, {columns}) {counted}
ON CONFLICT (router_id, start_at, interface) DO UPDATE SET {updates}
"""
# A bucket for which another process is storing a sample waits for the next round.
_TAKE = """
WITH due AS MATERIALIZED (
    SELECT router_id, start_at FROM telemetry_stale_loss_bucket
    WHERE step_s = %(step)s AND start_at <= %(over)s ORDER BY start_at LIMIT %(batch)s
), complete AS MATERIALIZED (
    SELECT start_at FROM (SELECT DISTINCT start_at FROM due) AS starts
    WHERE pg_try_advisory_xact_lock(%(storing)s, (extract(epoch FROM start_at) / 300)::int)
)
DELETE FROM telemetry_stale_loss_bucket AS mark USING due JOIN complete ON complete.start_at = due.start_at
WHERE mark.router_id = due.router_id AND mark.step_s = %(step)s AND mark.start_at = due.start_at
RETURNING due.router_id, due.start_at
"""
_MARK = """
INSERT INTO telemetry_stale_loss_bucket (router_id, step_s, start_at)
SELECT DISTINCT router_id, %(step)s, date_bin(%(length)s, start_at, 'epoch')
FROM unnest(%(routers)s::bigint[], %(starts)s::timestamptz[]) AS b (router_id, start_at)
ON CONFLICT DO NOTHING
"""


def losses_roll_up(*, now: datetime, most: int | None = None) -> int:
    """Count again every marked bucket that ended at least REPORTING_DELAY ago. Return the number of buckets.

    Returns 0 while another process rolls up losses. ``most``: stop after about this many buckets.
    """
    return count_marked(
        LOSS_ROLLUPS, lock=AdvisoryLock.LOSS_ROLL_UPS, take=_TAKE, count=_count, now=now, most=most
    )


def _count(cursor: Any, table: Table, due: Sequence[tuple[int, datetime]]) -> None:
    partitions_ensure({start.astimezone(UTC).date() for _, start in due}, table)
    counted = _FROM_SAMPLES
    if table is not _FIVE_MINUTES:
        counted = _FROM_FINER.format(finer=LOSS_ROLLUPS[LOSS_ROLLUPS.index(table) - 1].name)
    statement = _UPSERT.format(
        table=table.name,
        columns=", ".join(_STORED),
        counted=counted,
        updates=", ".join(f"{column} = EXCLUDED.{column}" for column in _STORED),
    )
    cursor.execute("SET LOCAL jit = off")
    cursor.execute(statement, _buckets(due, table.step_s))
    for longer in LOSS_ROLLUPS[LOSS_ROLLUPS.index(table) + 1 :][:1]:
        cursor.execute(_MARK, _buckets(due, longer.step_s) | {"step": longer.step_s})


def _buckets(due: Iterable[tuple[int, datetime]], length_s: int) -> dict[str, Any]:
    routers, starts = zip(*due, strict=True)
    return {
        "routers": list(routers),
        "starts": list(starts),
        "length": timedelta(seconds=length_s),
        "reach": LONGEST_SAMPLE,
    }


def losses_of(router_id: int, starts: range) -> Rows:
    """Return the non-empty buckets of a router and its interfaces that begin at ``starts`` (epoch s)."""
    table = next((each for each in reversed(LOSS_ROLLUPS) if starts.step % each.step_s == 0), None)
    rows: Rows = {}
    with connection.cursor() as cursor:
        # Read the marks first: a bucket that is rolled up later can still be read from the samples.
        fresh = set(starts) if table is None else _marked(cursor, router_id, starts, table)
        if table is not None and len(fresh) < len(starts):
            rows = _stored(cursor, router_id, starts, table, fresh)
    return rows | _counted_now(router_id, sorted(fresh), starts.step) if fresh else rows


def _counted_now(router_id: int, starts: Sequence[int], step_s: int) -> Rows:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL jit = off")
        cursor.execute(_FROM_SAMPLES, _buckets([(router_id, _time(start)) for start in starts], step_s))
        return {(int(row[1].timestamp()), row[2]): row[3:] for row in cursor.fetchall()}


def _marked(cursor: Any, router_id: int, starts: range, table: Table) -> set[int]:
    cursor.execute(
        "SELECT DISTINCT extract(epoch FROM start_at)::bigint FROM telemetry_stale_loss_bucket"
        " WHERE router_id = %s AND step_s <= %s AND start_at >= %s AND start_at < %s",
        [router_id, table.step_s, _time(starts.start), _time(starts.stop)],
    )
    return {start - start % starts.step for (start,) in cursor.fetchall()}.intersection(starts)


def _stored(cursor: Any, router_id: int, starts: range, table: Table, without: set[int]) -> Rows:
    sums = ", ".join(f"sum({column})" for column in COUNTS)
    cursor.execute(
        f"SELECT extract(epoch FROM date_bin(%s, start_at, 'epoch'))::bigint AS longer_at, interface,"  # noqa: S608 - constants
        f" sum(covered_ms)::int, {sums}, max(buffers), min(buffers_free), bool_or(simulated)"
        f" FROM {table.name} WHERE router_id = %s AND start_at >= %s AND start_at < %s"
        " GROUP BY longer_at, interface",
        [timedelta(seconds=starts.step), router_id, _time(starts.start), _time(starts.stop)],
    )
    return {row[:2]: row[2:] for row in cursor.fetchall() if row[0] not in without}


def _time(epoch_s: int) -> datetime:
    return datetime.fromtimestamp(epoch_s, tz=UTC)
