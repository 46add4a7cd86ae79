"""Losses of routers and interfaces: storage of the agents' counts, and their roll-up into buckets.

The buckets have 5 minutes, an hour and a day. This works as for lines (portal.telemetry.rollups): every
stored sample marks its 5-minute bucket as stale, and a marked bucket is counted again as a whole. Queries do
not wait for the roll-up: they count marked buckets from the samples.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, transaction

from portal.core.db.advisory_locks import AdvisoryLock
from portal.inventory.kinds import is_interface_name
from portal.inventory.models import Router
from portal.telemetry.partitions import partitions_ensure
from portal.telemetry.reported_counters import LONGEST_SAMPLE, CounterReport, CounterSample
from portal.telemetry.rollup_tables import LOSS_ROLLUPS, Table
from portal.telemetry.rollups import count_marked

# The counts of an interface, in frames: carried frames first, then losses.
OF_INTERFACES = (
    "rx_packets",
    "tx_packets",
    "drops",
    "rx_miss",
    "rx_errors",
    "rx_no_buffer",
    "tx_errors",
)
# Losses of the interface itself. ``drops`` are not among them, because VPP also drops frames on purpose.
LOST = ("rx_miss", "rx_errors", "rx_no_buffer", "tx_errors")
# The counts of a router, in packets.
OF_ROUTERS = ("no_such_tunnel", "fragments_sent", "reassembled", "reassembly_failed")
COUNTS = (*OF_INTERFACES, *OF_ROUTERS)
# VPP's buffers at one moment: all buffers, and the free buffers.
BUFFERS = ("buffers", "buffers_free")
COLUMNS = (*COUNTS, *BUFFERS)
# The value of the column ``interface`` in rows with a router's own counts.
ROUTER = ""

_INSERT = """
WITH stored AS (
    INSERT INTO telemetry_loss_sample (router_id, boot_id, simulated, seq, from_at, to_at, interface,
                                       {columns})
    SELECT %s, %s::uuid, %s, seq, 'epoch'::timestamptz + from_ms * interval '1 millisecond',
           'epoch'::timestamptz + to_ms * interval '1 millisecond', interface, {columns}
    FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::text[], {arrays})
         AS sample (seq, from_ms, to_ms, interface, {columns})
    ON CONFLICT DO NOTHING
    RETURNING from_at, to_at
)
INSERT INTO telemetry_stale_loss_bucket (router_id, step_s, start_at)
SELECT DISTINCT %s::bigint, 300, start_at
FROM stored, generate_series(date_bin('5 minutes', from_at, 'epoch'), to_at - interval '1 microsecond',
                           '5 minutes') AS start_at
ON CONFLICT DO NOTHING
""".format(columns=", ".join(COLUMNS), arrays=", ".join(["%s::bigint[]"] * len(COLUMNS)))  # noqa: S608 - constants


def losses_insert(
    cursor: Any, *, router: Router, report: CounterReport, good: Iterable[CounterSample]
) -> None:
    """Store the counts of the router and its interfaces from these samples, and mark their buckets as stale.

    Each count is stored once. The caller must protect the marks first
    (portal.telemetry.rollups.lock_buckets).
    """
    rows: list[tuple[CounterSample, str, Any]] = []
    for sample in good:
        if sample.router is not None:
            rows.append((sample, ROUTER, sample.router))
        named = {each.name: each for each in sample.interfaces if is_interface_name(each.name)}
        rows += [(sample, name, each) for name, each in named.items()]
    if not rows:
        return
    cursor.execute(
        _INSERT,
        [
            router.pk,
            report.boot_id,
            report.simulated,
            *([getattr(sample, name) for sample, _, _ in rows] for name in ("seq", "from_ms", "to_ms")),
            [name for _, name, _ in rows],
            *_columns([counted for _, _, counted in rows]),
            router.pk,
        ],
    )


def _columns(counted: Sequence[Any]) -> list[list[int | None]]:
    return [[getattr(each, name, None) for each in counted] for name in COLUMNS]


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
