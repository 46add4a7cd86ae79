"""Buckets of counted traffic: their queries, rates, percentiles and units.

The queries read the rollups; for stale buckets they read the next finer table. A result always equals a count
from the samples alone. A bucket at the edge of the range is read as a whole. The same bucket therefore has
the same value in every graph.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from portal.telemetry.partitioned_tables import FIVE_MINUTES, ROLLUPS, SAMPLES, Table, coarsest_for
from portal.telemetry.reported_counters import LONGEST_SAMPLE
from portal.telemetry.rollups import COLUMNS, COUNTS, FROM_SAMPLES, MOST, put_together
from portal.vll.models import Vll


class Unit(Enum):
    """A unit. The API uses ``name`` in lower case; ``value`` is the unit of the rate."""

    BITS = "bit/s"
    PACKETS = "packet/s"

    @property
    def counted(self) -> str:
        """The counter that this unit is computed from: ``bytes`` or ``packets``."""
        return "bytes" if self is Unit.BITS else "packets"

    @property
    def factor(self) -> int:
        """The factor from counts to the unit: 8 bits per byte, 1 packet per packet."""
        return 8 if self is Unit.BITS else 1


STEPS_S = (10, 30, 60, 300, 900, 1800, 3600, 7200, 14400, 86400)
MAX_POINTS = 1000
PERCENTILE = 0.95


@dataclass(frozen=True, slots=True)
class Bucket:
    """Bits or packets counted in a bucket, and the number of seconds in which they were counted."""

    into: float
    out: float
    covered_s: float

    @property
    def in_rate(self) -> float:
        return self.into / self.covered_s

    @property
    def out_rate(self) -> float:
        return self.out / self.covered_s


def automatic_step(range_s: float, *, finest_s: int = STEPS_S[0]) -> int:
    """Return the shortest step (s) of at least ``finest_s`` that gives at most ``MAX_POINTS`` points.

    Return the longest step if every step gives more points.
    """
    return next((step for step in STEPS_S if step >= finest_s and range_s / step <= MAX_POINTS), STEPS_S[-1])


def merged(buckets: Mapping[int, Bucket], step_s: int) -> dict[int, Bucket]:
    """Return the counts in buckets of ``step_s``, which must be a multiple of the length of ``buckets``."""
    longer: dict[int, Bucket] = {}
    for start, bucket in buckets.items():
        begin = start - start % step_s
        known = longer.get(begin, Bucket(0.0, 0.0, 0.0))
        longer[begin] = Bucket(
            known.into + bucket.into,
            known.out + bucket.out,
            known.covered_s + bucket.covered_s,
        )
    return longer


def points(buckets: Mapping[int, Bucket], starts: Iterable[int]) -> list[tuple[int, int | None, int | None]]:
    """Return ``(start, in, out)`` for each start: rates per second, or None if the bucket has no counts."""
    drawn: list[tuple[int, int | None, int | None]] = []
    for start in starts:
        bucket = buckets.get(start)
        if bucket is None:
            drawn.append((start, None, None))
        else:
            drawn.append((start, round(bucket.in_rate), round(bucket.out_rate)))
    return drawn


def percentile_95(rates: Iterable[float]) -> int | None:
    """Return the 95th percentile by nearest rank, as transit providers bill; None without rates.

    The highest 5 % of the n rates are left out; their number is rounded down. The result is the highest of
    the remaining rates (rank ceil(0.95 n)). Missing buckets do not count as zero, because they are not part
    of n.
    """
    ordered = sorted(rates)
    return round(ordered[math.ceil(len(ordered) * PERCENTILE) - 1]) if ordered else None


SIDES = ("a", "z")
Columns = tuple[str, ...]
Rows = dict[int, tuple[Any, ...]]
# PostgreSQL estimates 1,000 rows per series of samples. JIT compilation would take longer than the query.
_UNCOMPILED = "SET LOCAL jit = off"
_THROUGHPUT = (*COUNTS, "a_covered_ms", "z_covered_ms", "simulated")


def starts_of(since: datetime, until: datetime, step_s: int) -> range:
    """Return the starts (epoch s) of all buckets that touch the range."""
    first = int(since.timestamp() // step_s) * step_s
    last = -int(-until.timestamp() // step_s) * step_s
    return range(first, last, step_s)


def buckets_of(
    vll: Vll, since: datetime, until: datetime, step_s: int, unit: Unit = Unit.BITS
) -> tuple[dict[str, dict[int, Bucket]], bool]:
    """Return the non-empty buckets by side and start (epoch s), and whether any bucket is simulated."""
    starts = starts_of(since, until, step_s)
    table = coarsest_for(step_s)
    if table is SAMPLES:
        return _of_samples(vll, starts, unit)
    rows = rolled_up(vll, starts, table, _THROUGHPUT)
    found: dict[str, dict[int, Bucket]] = {}
    for side in SIDES:
        into, out = (_THROUGHPUT.index(f"{side}_{way}_{unit.counted}") for way in ("in", "out"))
        covered = _THROUGHPUT.index(f"{side}_covered_ms")
        found[side] = {
            start: Bucket(row[into] * unit.factor, row[out] * unit.factor, row[covered] / 1000)
            for start, row in rows.items()
            if row[covered]
        }
    return found, any(row[-1] for row in rows.values())


def rolled_up(vll: Vll, starts: range, table: Table, columns: Columns) -> Rows:
    """Return ``columns`` of the line's buckets in ``table``, by start (epoch s).

    Buckets that are marked as stale in ``table`` or in a finer table are computed from the next finer rows.
    If the step of ``starts`` is longer than that of ``table``, rows are merged.
    """
    with connection.cursor() as cursor:
        # Read the marks first: buckets that are rolled up later can still be read from the finer rows.
        stale = _stale(cursor, vll, starts, table)
        if starts.step == table.step_s:
            return _read(cursor, vll, starts, table, stale, columns)
        return _longer(cursor, vll, starts, table, stale, columns)


def _stale(cursor: Any, vll: Vll, starts: range, table: Table) -> dict[int, set[int]]:
    """Return the starts (epoch s) of stale buckets by step (s): marked ones, and longer ones around them."""
    cursor.execute(
        "SELECT DISTINCT step_s, extract(epoch FROM start_at)::bigint FROM telemetry_stale_bucket"
        " WHERE vll_id = %s AND step_s <= %s AND start_at >= %s AND start_at < %s",
        [vll.pk, table.step_s, time_of(starts.start), time_of(starts.stop)],
    )
    stale: dict[int, set[int]] = {one.step_s: set() for one in ROLLUPS}
    for step_s, start in cursor.fetchall():
        for one in ROLLUPS:
            if step_s <= one.step_s <= table.step_s:
                stale[one.step_s].add(start - start % one.step_s)
    return stale


_ROWS = """
SELECT extract(epoch FROM start_at)::bigint, {columns} FROM {table}
WHERE vll_id = %s AND start_at >= %s AND start_at <= %s
"""


def _read(
    cursor: Any, vll: Vll, wanted: Collection[int], table: Table, stale: dict[int, set[int]], columns: Columns
) -> Rows:
    finer = stale[table.step_s].intersection(wanted)
    rows: Rows = {}
    if len(finer) < len(wanted):
        among = wanted if isinstance(wanted, range) else set(wanted)
        cursor.execute(
            _ROWS.format(table=table.name, columns=", ".join(columns)),
            [vll.pk, time_of(min(wanted)), time_of(max(wanted))],
        )
        rows = {row[0]: row[1:] for row in cursor if row[0] in among and row[0] not in finer}
    if finer and table is FIVE_MINUTES:
        with transaction.atomic():
            counted = counted_now(cursor, [(vll.pk, time_of(start)) for start in finer], columns)
        rows |= {int(row[1].timestamp()): row[2:] for row in counted}
    elif finer:
        below = ROLLUPS[ROLLUPS.index(table) - 1]
        parts = [part for start in finer for part in range(start, start + table.step_s, below.step_s)]
        rows |= _merged(_read(cursor, vll, parts, below, stale, columns), table.step_s, columns)
    return rows


# PostgreSQL adds up the hours of a year faster than Python can read them.
_LONGER_ROWS = """
SELECT extract(epoch FROM longer_at)::bigint, {merged}
FROM (SELECT date_bin(%s, start_at, timestamptz 'epoch') AS longer_at, {columns} FROM {table}
      WHERE vll_id = %s AND start_at >= %s AND start_at < %s) AS shorter
GROUP BY longer_at
"""


def _longer(
    cursor: Any, vll: Vll, starts: range, table: Table, stale: dict[int, set[int]], columns: Columns
) -> Rows:
    merged = ", ".join(f"{put_together(column)}({column})" for column in columns)
    cursor.execute(
        _LONGER_ROWS.format(merged=merged, table=table.name, columns=", ".join(columns)),
        [timedelta(seconds=starts.step), vll.pk, time_of(starts.start), time_of(starts.stop)],
    )
    marked = {start - start % starts.step for start in stale[table.step_s]}.intersection(starts)
    rows: Rows = {row[0]: row[1:] for row in cursor if row[0] not in marked}
    if marked:
        parts = [part for start in marked for part in range(start, start + starts.step, table.step_s)]
        rows |= _merged(_read(cursor, vll, parts, table, stale, columns), starts.step, columns)
    return rows


_MARKED = (
    "SELECT DISTINCT vll_id, start_at FROM telemetry_stale_bucket"
    " WHERE vll_id = ANY(%(vlls)s) AND step_s = 300 AND start_at >= %(since)s AND start_at < %(until)s"
)
_FIVE_MINUTES = (
    "SELECT vll_id, start_at, {columns} FROM telemetry_five_minutes"
    " WHERE vll_id = ANY(%(vlls)s) AND start_at >= %(since)s AND start_at < %(until)s"
)


def five_minutes_of(vlls: Collection[UUID], starts: range, columns: Columns) -> list[tuple[Any, ...]]:
    """Return line, start and ``columns`` of the 5-minute buckets of many lines, in two or three queries."""
    since, until = time_of(starts.start), time_of(starts.stop)
    parameters: dict[str, Any] = {"vlls": list(vlls), "since": since, "until": until}
    with transaction.atomic(), connection.cursor() as cursor:
        # Read the marks first: a bucket that is rolled up after this read can still be read from the samples.
        cursor.execute(_MARKED, parameters)
        marked = set(cursor.fetchall())
        cursor.execute(_FIVE_MINUTES.format(columns=", ".join(columns)), parameters)
        rows = [row for row in cursor.fetchall() if row[:2] not in marked]
        return rows + counted_now(cursor, sorted(marked), columns) if marked else rows


def counted_now(
    cursor: Any, marked: Collection[tuple[UUID, datetime]], columns: Columns
) -> list[tuple[Any, ...]]:
    """Return line, start and ``columns`` of marked 5-minute buckets, counted from the samples.

    Buckets without samples are absent. Call it at the end of a transaction, because it disables JIT
    compilation for the rest of the transaction.
    """
    vlls, starts = [vll for vll, _start in marked], [start for _vll, start in marked]
    cursor.execute(_UNCOMPILED)
    cursor.execute(FROM_SAMPLES, {"owners": vlls, "starts": starts, "reach": LONGEST_SAMPLE})
    kept = [0, 1, *(2 + COLUMNS.index(column) for column in columns)]
    return [tuple(row[at] for at in kept) for row in cursor.fetchall()]


def _merged(rows: Rows, step_s: int, columns: Columns) -> Rows:
    longer: Rows = {}
    for start, row in rows.items():
        known = longer.get(start - start % step_s)
        longer[start - start % step_s] = row if known is None else tuple(map(_both, columns, known, row))
    return longer


def _both(column: str, one: Any, other: Any) -> Any:
    if one is None or other is None:
        return one if other is None else other
    if column in MOST:
        return max(one, other)
    return one or other if isinstance(one, bool) else one + other


def _of_samples(vll: Vll, starts: range, unit: Unit) -> tuple[dict[str, dict[int, Bucket]], bool]:
    parameters: dict[str, Any] = {
        "vll": vll.pk,
        "since": time_of(starts.start),
        "until": time_of(starts.stop),
        "step": starts.step * 1000,
        "reach": time_of(starts.stop) + LONGEST_SAMPLE,
    }
    found: dict[str, dict[int, Bucket]] = {side: {} for side in SIDES}
    any_simulated = False
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_UNCOMPILED)
        cursor.execute(_BUCKETS.format(counted=unit.counted, factor=unit.factor), parameters)
        for side, number, into, out, covered_s, simulated in cursor.fetchall():
            found[side][starts.start + number * starts.step] = Bucket(into, out, covered_s)
            any_simulated = any_simulated or simulated
    return found, any_simulated


# Milliseconds since the first bucket, as whole numbers, because agents measure in milliseconds. The limit on
# to_at lets PostgreSQL skip the partitions of other days.
_BUCKETS = """
WITH clipped AS (
    SELECT side, simulated, in_{counted} AS counted_in, out_{counted} AS counted_out,
           round(1000 * extract(epoch FROM to_at - from_at))::float8 AS length_ms,
           round(1000 * extract(epoch FROM greatest(from_at, %(since)s) - %(since)s))::bigint AS first,
           round(1000 * extract(epoch FROM least(to_at, %(until)s) - %(since)s))::bigint AS last
    FROM telemetry_sample
    WHERE vll_id = %(vll)s AND to_at > %(since)s AND to_at <= %(reach)s AND from_at < %(until)s
), shared AS (
    SELECT side, simulated, counted_in, counted_out, length_ms, number,
           least(last, (number + 1) * %(step)s) - greatest(first, number * %(step)s) AS overlap_ms
    FROM clipped, generate_series(first / %(step)s, (last - 1) / %(step)s) AS number
)
SELECT side, number, {factor} * sum(counted_in * (overlap_ms / length_ms)),
       {factor} * sum(counted_out * (overlap_ms / length_ms)), sum(overlap_ms)::float8 / 1000,
       bool_or(simulated)
FROM shared GROUP BY side, number
"""


def time_of(epoch_s: int) -> datetime:
    """Return the start of a bucket as a time."""
    return datetime.fromtimestamp(epoch_s, tz=UTC)
