"""Roll-up of samples into buckets of 5 minutes, an hour and a day.

Every stored sample marks its 5-minute bucket as stale. When a stale bucket is complete, the whole bucket is
counted again from the next finer table, and the next longer bucket becomes stale. Repeated, unordered and
late samples therefore need no special handling. Until a stale bucket is counted again, queries compute it
from finer rows (buckets.py).
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from portal.core.db.advisory_locks import AdvisoryLock
from portal.telemetry.partitioned_tables import FIVE_MINUTES, ROLLUPS, Table, partitions_ensure
from portal.telemetry.reported_counters import LONGEST_SAMPLE

# A function that counts buckets of a table. Its arguments are a cursor, the table, and the owner and start of
# each bucket. The owner is a line or a router.
_Count = Callable[[Any, Table, list[tuple[Any, datetime]]], None]
# Agents measure every 10 s and report soon after. A sample that ended less than this time ago does not count
# as missing yet.
REPORTING_DELAY = timedelta(seconds=30)
_BATCH = 2000
COUNTS = tuple(
    f"{side}_{way}_{what}" for side in "az" for way in ("in", "out") for what in ("bytes", "packets")
)
COLOURS = ("conform", "exceed", "violate")
POLICED = tuple(
    f"{side}_{colour}_{what}" for side in "az" for colour in COLOURS for what in ("bytes", "packets")
)
# Frames that VPP dropped at an end: incoming frames, and frames that were to leave there. Null if no sample
# of the bucket has the count.
DROPS = tuple(f"{side}_{way}_drops" for side in "az" for way in ("in", "out"))
COVERED = ("a_covered_ms", "z_covered_ms", "a_policed_ms", "z_policed_ms")
# The most frames within the profile in one sample. Agents do not read the counters exactly at a bucket's
# border, so the count before a border may be wrong by up to this number. Null if not stored.
MOST = tuple(f"{side}_{way}_most" for side in "az" for way in ("in", "out"))
COLUMNS = (*COUNTS, *POLICED, *DROPS, *COVERED, *MOST, "simulated")


def put_together(column: str) -> str:
    """Return the SQL aggregate function that merges the values of ``column`` in shorter buckets."""
    return "bool_or" if column == "simulated" else "max" if column in MOST else "sum"


# Buckets from parts of samples. Each part has its overlap with the bucket, and the length of the whole
# sample.
_COUNTED = """
SELECT vll_id, start_at, {counts},
       coalesce(sum(overlap_ms) FILTER (WHERE side = 'a'), 0)::int AS a_covered_ms,
       coalesce(sum(overlap_ms) FILTER (WHERE side = 'z'), 0)::int AS z_covered_ms,
       (sum(overlap_ms) FILTER (WHERE side = 'a' AND conform_bytes IS NOT NULL))::int AS a_policed_ms,
       (sum(overlap_ms) FILTER (WHERE side = 'z' AND conform_bytes IS NOT NULL))::int AS z_policed_ms,
       max(in_packets - coalesce(violate_packets, 0)) FILTER (WHERE side = 'a')::real AS a_in_most,
       max(out_packets) FILTER (WHERE side = 'a')::real AS a_out_most,
       max(in_packets - coalesce(violate_packets, 0)) FILTER (WHERE side = 'z')::real AS z_in_most,
       max(out_packets) FILTER (WHERE side = 'z')::real AS z_out_most,
       bool_or(simulated) AS simulated
FROM ({parts}) AS shared
GROUP BY vll_id, start_at
""".replace(
    "{counts}",
    ", ".join(
        f"sum({column[2:]} * (overlap_ms / length_ms)) FILTER (WHERE side = '{column[0]}') AS {column}"
        for column in (*COUNTS, *POLICED, *DROPS)
    ),
)
_PART = """side, in_bytes, in_packets, out_bytes, out_packets, conform_bytes, conform_packets, exceed_bytes,
       exceed_packets, violate_bytes, violate_packets, simulated"""
# The buckets (%(vlls)s, %(starts)s) from samples. The counts of a sample are spread evenly over its time.
# Sums of milliseconds are exact, because agents measure in milliseconds.
FROM_SAMPLES = _COUNTED.format(
    parts=f"""
SELECT b.vll_id, b.start_at, {_PART}, in_drops, out_drops,
       round(1000 * extract(epoch FROM least(s.to_at, b.start_at + interval '5 minutes')
                                       - greatest(s.from_at, b.start_at)))::float8 AS overlap_ms,
       round(1000 * extract(epoch FROM s.to_at - s.from_at))::float8 AS length_ms
FROM unnest(%(vlls)s::uuid[], %(starts)s::timestamptz[]) AS b (vll_id, start_at)
CROSS JOIN (VALUES ('a'), ('z')) AS ends (which)
CROSS JOIN LATERAL (
    SELECT from_at, to_at, {_PART}, in_drops, out_drops
    FROM telemetry_sample
    WHERE vll_id = b.vll_id AND side = ends.which AND from_at < b.start_at + interval '5 minutes'
      AND to_at > b.start_at AND to_at <= b.start_at + interval '5 minutes' + %(reach)s
) AS s"""  # noqa: S608 - constants
)
_FROM_FINER = """
SELECT b.vll_id, b.start_at, {columns}
FROM unnest(%(vlls)s::uuid[], %(starts)s::timestamptz[]) AS b (vll_id, start_at)
CROSS JOIN LATERAL (
    SELECT {sums} FROM {finer}
    WHERE vll_id = b.vll_id AND start_at >= b.start_at AND start_at < b.start_at + %(length)s
    HAVING count(*) > 0
) AS summed
"""
_UPSERT = """
INSERT INTO {table} (vll_id, start_at, {columns}) {counted}
ON CONFLICT (vll_id, start_at) DO UPDATE SET {updates}
"""
# Removes marks, and returns the owner and the start of each bucket. A bucket for which another process is
# storing a sample waits for the next round.
_TAKE = """
WITH due AS MATERIALIZED (
    SELECT {key} FROM {marks}
    WHERE step_s = %(step)s AND start_at <= %(over)s ORDER BY start_at LIMIT %(batch)s
), complete AS MATERIALIZED (
    SELECT start_at FROM (SELECT DISTINCT start_at FROM due) AS starts
    WHERE pg_try_advisory_xact_lock(%(storing)s, (extract(epoch FROM start_at) / 300)::int)
)
DELETE FROM {marks} AS mark USING due JOIN complete ON complete.start_at = due.start_at
WHERE {same}
RETURNING due.{owner}, due.start_at
"""
_STORING = "SELECT pg_advisory_xact_lock_shared(%s, number) FROM unnest(%s::int[]) AS number"
_MARK = """
INSERT INTO telemetry_stale_bucket (vll_id, step_s, start_at, side)
SELECT DISTINCT vll_id, %(step)s, date_bin(%(length)s, start_at, 'epoch'), ''
FROM unnest(%(vlls)s::uuid[], %(starts)s::timestamptz[]) AS b (vll_id, start_at)
ON CONFLICT DO NOTHING
"""


# Records the 5-minute buckets of a silence that contain evidence: the router's counts that arrived late, or
# frames that came out of a line. An existing record is updated without a change. The update locks the record,
# so that a judgement waits before it takes the record off the list.
_NOTE_UNJUDGED = """
INSERT INTO telemetry_unjudgedfiveminutes AS noted (silence_id, start_at)
SELECT DISTINCT silence.id, b.start_at
FROM unnest(%(vlls)s::uuid[], %(starts)s::timestamptz[]) AS b (vll_id, start_at)
JOIN vll_vllend AS one_end ON one_end.vll_id = b.vll_id
JOIN inventory_port AS port ON port.id = one_end.port_id
JOIN inventory_routersilence AS silence ON silence.router_id = port.router_id
     AND silence.since <= b.start_at AND coalesce(silence.until, 'infinity') > b.start_at
JOIN telemetry_five_minutes AS counted ON counted.vll_id = b.vll_id AND counted.start_at = b.start_at
WHERE counted.a_out_packets > 0 OR counted.z_out_packets > 0
      OR CASE one_end.side WHEN 'a' THEN counted.a_covered_ms ELSE counted.z_covered_ms END > 0
ORDER BY silence.id, b.start_at
ON CONFLICT (silence_id, start_at) DO UPDATE SET start_at = noted.start_at
"""


def lock_buckets(times_ms: Iterable[tuple[int, int]]) -> None:
    """Protect the marks of all 5-minute buckets that these samples touch, until this transaction ends.

    ``times_ms``: start and end of each sample (ms since the epoch). Call it before storing the samples.
    Otherwise a roll-up that cannot read the samples yet could remove their marks.
    """
    step_ms = FIVE_MINUTES.step_s * 1_000
    touched = {
        number for since, to in times_ms for number in range(since // step_ms, (to - 1) // step_ms + 1)
    }
    with connection.cursor() as cursor:
        cursor.execute(_STORING, [AdvisoryLock.STORED_SAMPLES, sorted(touched)])


def roll_up(*, now: datetime, most: int | None = None) -> int:
    """Count again every stale bucket that ended at least REPORTING_DELAY ago. Return the number of buckets.

    Returns 0 while another process rolls up. ``most``: stop after about this many buckets, and leave the rest
    to the next call.
    """
    marks = Marks("telemetry_stale_bucket", ("vll_id", "step_s", "start_at", "side"), AdvisoryLock.ROLL_UPS)
    return count_marked(ROLLUPS, marks, count=_count, now=now, most=most)


class Marks(NamedTuple):
    """A table of marked buckets, and its key, which begins with the owner. ``lock`` is an advisory lock."""

    table: str
    key: tuple[str, ...]
    lock: int

    @property
    def take(self) -> str:
        same = " AND ".join(f"mark.{column} = due.{column}" for column in self.key)
        return _TAKE.format(key=", ".join(self.key), marks=self.table, same=same, owner=self.key[0])


def count_marked(
    tables: Iterable[Table], marks: Marks, *, count: _Count, now: datetime, most: int | None = None
) -> int:
    """Compute marked buckets in batches, until about ``most``. Return their number.

    Returns 0 while another process has the lock of ``marks``.
    """
    taken = 0
    for table in tables:
        while (most is None or taken < most) and (some := _count_some(table, marks, count, now)):
            taken += some
    return taken


@transaction.atomic
def _count_some(table: Table, marks: Marks, count: _Count, now: datetime) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [marks.lock])
        if not cursor.fetchone()[0]:
            return 0
        over = now - REPORTING_DELAY - timedelta(seconds=table.step_s)
        cursor.execute(
            marks.take,
            {"step": table.step_s, "over": over, "batch": _BATCH, "storing": AdvisoryLock.STORED_SAMPLES},
        )
        due = sorted(set(cursor.fetchall()))
        if due:
            count(cursor, table, due)
        return len(due)


def mark_stale(cursor: Any, due: Sequence[tuple[UUID, datetime]], table: Table = FIVE_MINUTES) -> None:
    """Mark as stale the buckets of ``table`` that contain these starts."""
    step = {"step": table.step_s, "length": timedelta(seconds=table.step_s)}
    if due:
        cursor.execute(_MARK, _columns(due) | step)


def lock_roll_ups(cursor: Any) -> None:
    """Prevent roll-ups until the transaction ends. Wait for a roll-up that is running."""
    cursor.execute("SELECT pg_advisory_xact_lock(%s)", [AdvisoryLock.ROLL_UPS])


def _count(cursor: Any, table: Table, due: Sequence[tuple[UUID, datetime]]) -> None:
    partitions_ensure({start.astimezone(UTC).date() for _, start in due}, table)
    buckets = _columns(due)
    # The planner overestimates the length of the lists. JIT compilation would take longer than the query.
    cursor.execute("SET LOCAL jit = off")
    cursor.execute(
        _statement(table),
        {**buckets, "reach": LONGEST_SAMPLE, "length": timedelta(seconds=table.step_s)},
    )
    if table is FIVE_MINUTES:
        cursor.execute(_NOTE_UNJUDGED, buckets)
    for longer in ROLLUPS[ROLLUPS.index(table) + 1 :][:1]:
        mark_stale(cursor, due, longer)


def _columns(due: Sequence[tuple[UUID, datetime]]) -> dict[str, Any]:
    return {"vlls": [vll for vll, _ in due], "starts": [start for _, start in due]}


def _statement(table: Table) -> str:
    columns = ", ".join(COLUMNS)
    if table is FIVE_MINUTES:
        counted = FROM_SAMPLES
    else:
        counted = _FROM_FINER.format(
            columns=columns,
            sums=", ".join(f"{put_together(column)}({column}) AS {column}" for column in COLUMNS),
            finer=ROLLUPS[ROLLUPS.index(table) - 1].name,
        )
    updates = ", ".join(f"{column} = EXCLUDED.{column}" for column in COLUMNS)
    return _UPSERT.format(table=table.name, columns=columns, counted=counted, updates=updates)
