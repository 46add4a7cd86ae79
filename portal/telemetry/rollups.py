"""Roll-up of samples into buckets of 5 minutes, an hour and a day.

Every stored sample marks its 5-minute bucket as stale. When a stale bucket is complete, the whole bucket is
counted again from the next finer table, and the next longer bucket becomes stale. Repeated, unordered and
late samples therefore need no special handling. Until a stale bucket is counted again, queries compute it
from finer rows (buckets.py).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, transaction

from portal.core.db.sessions import AdvisoryLock
from portal.telemetry.partitioned_tables import FIVE_MINUTES, ROLLUPS, Table, partitions_ensure
from portal.telemetry.reported_counters import LONGEST_SAMPLE

# Agents measure every 10 s and report soon after. A sample counts as missing this time after its end.
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


# Buckets from parts of samples, each with its overlap with the bucket and its sample's length.
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
# The buckets (%(owners)s, %(starts)s) from samples. The counts of a sample are spread evenly over its time.
# Sums of milliseconds are exact, because agents measure in milliseconds.
FROM_SAMPLES = _COUNTED.format(
    parts=f"""
SELECT b.vll_id, b.start_at, {_PART}, in_drops, out_drops,
       round(1000 * extract(epoch FROM least(s.to_at, b.start_at + interval '5 minutes')
                                       - greatest(s.from_at, b.start_at)))::float8 AS overlap_ms,
       round(1000 * extract(epoch FROM s.to_at - s.from_at))::float8 AS length_ms
FROM unnest(%(owners)s::uuid[], %(starts)s::timestamptz[]) AS b (vll_id, start_at)
CROSS JOIN (VALUES ('a'), ('z')) AS ends (which)
CROSS JOIN LATERAL (
    SELECT from_at, to_at, {_PART}, in_drops, out_drops
    FROM telemetry_sample
    WHERE vll_id = b.vll_id AND side = ends.which AND from_at < b.start_at + interval '5 minutes'
      AND to_at > b.start_at AND to_at <= b.start_at + interval '5 minutes' + %(reach)s
) AS s"""  # noqa: S608 - constants
)
_FROM_FINER = f"""
SELECT b.vll_id, b.start_at, {", ".join(COLUMNS)}
FROM unnest(%(owners)s::uuid[], %(starts)s::timestamptz[]) AS b (vll_id, start_at)
CROSS JOIN LATERAL (
    SELECT {", ".join(f"{put_together(column)}({column}) AS {column}" for column in COLUMNS)} FROM {{finer}}
    WHERE vll_id = b.vll_id AND start_at >= b.start_at AND start_at < b.start_at + %(length)s
    HAVING count(*) > 0
) AS summed
"""  # noqa: S608 - constants
_UPSERT = """
INSERT INTO {table} ({columns}) {counted}
ON CONFLICT ({key}) DO UPDATE SET {updates}
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
INSERT INTO {marks} ({key})
SELECT DISTINCT owner, %(step)s, date_bin(%(length)s, start_at, 'epoch'){rest}
FROM unnest(%(owners)s::{type}[], %(starts)s::timestamptz[]) AS b (owner, start_at)
ON CONFLICT DO NOTHING
"""


# Records the 5-minute buckets of a silence that contain evidence: the router's counts that arrived late, or
# frames that came out of a line. An existing record is updated without a change. The update locks the record,
# so that a judgement waits before it takes the record off the list.
_NOTE_UNJUDGED = """
INSERT INTO telemetry_unjudgedfiveminutes AS noted (silence_id, start_at)
SELECT DISTINCT silence.id, b.start_at
FROM unnest(%(owners)s::uuid[], %(starts)s::timestamptz[]) AS b (vll_id, start_at)
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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RollUp:
    """Counts that are rolled up into buckets. Each bucket has an owner, which is a line or a router.

    * ``tables``: the tables of buckets, from the shortest to the longest buckets.
    * ``marks`` and ``marks_key``: the table of stale buckets, and its key, which begins with the owner.
    * ``owner_type``: the type of the owner's id in SQL.
    * ``key`` and ``columns``: the key and the counts of a bucket. All queries return them in this order.
    * ``from_samples`` and ``from_finer``: the queries of buckets; ``{finer}`` is the next finer table.
    * ``note``: a statement to run after 5-minute buckets are stored; "" for none.
    * ``lock``: the advisory lock that lets only one process roll up.
    """

    tables: Sequence[Table]
    marks: str
    marks_key: tuple[str, ...]
    owner_type: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    from_samples: str
    from_finer: str
    note: str = ""
    lock: AdvisoryLock

    def run(self, *, now: datetime, most: int | None = None) -> int:
        """Count again every stale bucket that ended at least REPORTING_DELAY ago. Return their number.

        Returns 0 while another process rolls up. ``most``: stop after about this many buckets, and leave the
        rest to the next call.
        """
        taken = 0
        for table in self.tables:
            while (most is None or taken < most) and (some := self._count_some(table, now)):
                taken += some
        return taken

    @transaction.atomic
    def _count_some(self, table: Table, now: datetime) -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [self.lock])
            if not cursor.fetchone()[0]:
                return 0
            over = now - REPORTING_DELAY - timedelta(seconds=table.step_s)
            same = " AND ".join(f"mark.{column} = due.{column}" for column in self.marks_key)
            cursor.execute(
                _TAKE.format(
                    key=", ".join(self.marks_key), marks=self.marks, same=same, owner=self.marks_key[0]
                ),
                {"step": table.step_s, "over": over, "batch": _BATCH, "storing": AdvisoryLock.STORED_SAMPLES},
            )
            due = sorted(set(cursor.fetchall()))
            if due:
                self._count(cursor, table, due)
            return len(due)

    def _count(self, cursor: Any, table: Table, due: Sequence[tuple[Any, datetime]]) -> None:
        partitions_ensure({start.astimezone(UTC).date() for _, start in due}, table)
        owners, starts = (list(column) for column in zip(*due, strict=True))
        buckets = {"owners": owners, "starts": starts, "reach": LONGEST_SAMPLE}
        # The planner overestimates the length of the lists. JIT compilation would take longer than the query.
        cursor.execute("SET LOCAL jit = off")
        place = self.tables.index(table)
        statement = _UPSERT.format(
            table=table.name,
            columns=", ".join((*self.key, *self.columns)),
            counted=self.from_finer.format(finer=self.tables[place - 1].name) if place else self.from_samples,
            key=", ".join(self.key),
            updates=", ".join(f"{column} = EXCLUDED.{column}" for column in self.columns),
        )
        cursor.execute(statement, buckets | {"length": timedelta(seconds=table.step_s)})
        if self.note and not place:
            cursor.execute(self.note, buckets)
        for longer in self.tables[place + 1 :][:1]:
            rest = ", ''" * len(self.marks_key[3:])
            mark = _MARK.format(
                marks=self.marks, key=", ".join(self.marks_key), type=self.owner_type, rest=rest
            )
            step = {"step": longer.step_s, "length": timedelta(seconds=longer.step_s)}
            cursor.execute(mark, buckets | step)


LINES = RollUp(
    tables=ROLLUPS,
    marks="telemetry_stale_bucket",
    marks_key=("vll_id", "step_s", "start_at", "side"),
    owner_type="uuid",
    key=("vll_id", "start_at"),
    columns=COLUMNS,
    from_samples=FROM_SAMPLES,
    from_finer=_FROM_FINER,
    note=_NOTE_UNJUDGED,
    lock=AdvisoryLock.ROLL_UPS,
)
roll_up = LINES.run


def lock_roll_ups(cursor: Any) -> None:
    """Prevent roll-ups until the transaction ends. Wait for a roll-up that is running."""
    cursor.execute("SELECT pg_advisory_xact_lock(%s)", [AdvisoryLock.ROLL_UPS])
