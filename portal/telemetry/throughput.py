"""Throughput of a line, of a port, and of all lines of a customer.

A port may have thousands of lines. For the sums of lines, therefore only rollups are read. Samples that are
not yet rolled up do not count. The newest bucket appears ROLLED_UP_AFTER its end, when nearly all lines are
rolled up.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from portal.accounts.models import Customer
from portal.inventory.models import Port
from portal.telemetry.buckets import (
    MAX_POINTS,
    SIDES,
    STEPS_S,
    Bucket,
    Unit,
    automatic_step,
    buckets_of,
    five_minutes_of,
    merged,
    percentile_95,
    points,
    starts_of,
)
from portal.telemetry.errors import RangeEmpty, StepRefused
from portal.telemetry.models import FrozenMonth
from portal.telemetry.partitioned_tables import FIVE_MINUTES, ROLLUPS, TABLES, Table, finest_kept
from portal.telemetry.rollups import REPORTING_DELAY
from portal.telemetry.time_spans import ServiceTime, service_time
from portal.vll.models import Vll, VllEnd
from portal.vll.states import TERMINAL_LIFECYCLES

P95_BUCKET_S = FIVE_MINUTES.step_s
MAX_POINTS_REQUESTED = 10_000


def throughput(
    *,
    vll: Vll,
    since: datetime,
    until: datetime,
    step_s: int | None = None,
    unit: Unit = Unit.BITS,
    now: datetime,
) -> dict[str, Any]:
    """Return the response of ``GET /vlls/<id>/throughput``, in bit/s or packet/s.

    * ``a_end`` and ``z_end``: ``[start of the bucket (epoch s), in, out]`` for every bucket that touches the
      range. ``in`` and ``out`` are None if the bucket has no samples.
    * ``p95``: per end, the 95th percentiles of three 5-minute rates: ``in``, ``out`` and ``max``, the larger
      of these two rates. ``missing`` is the number of missing 5-minute buckets. The percentiles are None if
      the 5-minute rows of the range are no longer stored.
    * ``missing``: the number of buckets in which at least one end was not counted. Buckets outside the VLL's
      time in service do not count. The last REPORTING_DELAY does not count either, because reports may still
      arrive.

    Raises RangeEmpty or StepRefused.
    """
    step_s = step_for(since, until, step_s, now)
    with_p95 = since >= now - FIVE_MINUTES.retention
    # The rows are read once, in the shorter of both bucket lengths. The longer buckets are merged from them.
    read_s = min(step_s, P95_BUCKET_S) if with_p95 else step_s
    starts = starts_of(since, until, step_s)
    widest = max(step_s, P95_BUCKET_S)
    around = starts_of(since, until, widest)
    counted, simulated = buckets_of(
        vll, _instant(around.start, since), _instant(around.stop, since), read_s, unit
    )
    drawn = {side: merged(counted[side], step_s) for side in SIDES}
    served = service_time(vll)
    expected = expected_of(served, since, until, step_s, now)
    five_minutes = expected_of(served, since, until, P95_BUCKET_S, now)
    touched = starts_of(since, until, P95_BUCKET_S)
    return {
        "step_s": step_s,
        "unit": unit.value,
        "a_end": points(drawn["a"], starts),
        "z_end": points(drawn["z"], starts),
        "p95": {
            f"{side}_end": percentiles(
                _within(merged(counted[side], P95_BUCKET_S), touched) if with_p95 else {}, five_minutes
            )
            for side in SIDES
        },
        "missing": sum(any(start not in drawn[side] for side in SIDES) for start in expected),
        "simulated": simulated,
    }


def step_for(
    since: datetime,
    until: datetime,
    step_s: int | None,
    now: datetime,
    tables: Sequence[Table] = TABLES,
) -> int:
    """Return ``step_s``, or the shortest stored step with at most MAX_POINTS points.

    Raises RangeEmpty or StepRefused.
    """
    if since >= until:
        raise RangeEmpty
    range_s = (until - since).total_seconds()
    finest_s = finest_kept(since, now=now, tables=tables).step_s or STEPS_S[0]
    if step_s is None:
        return automatic_step(range_s, finest_s=finest_s)
    if step_s not in STEPS_S or step_s < finest_s or range_s / step_s > MAX_POINTS_REQUESTED:
        offered = tuple(step for step in STEPS_S if step >= finest_s)
        raise StepRefused(step_s=step_s, offered_s=offered, maximum_points=MAX_POINTS_REQUESTED)
    return step_s


def expected_of(served: ServiceTime, since: datetime, until: datetime, step_s: int, now: datetime) -> range:
    """Return the starts of the buckets that should have counts by now."""
    if served.began is None:
        return range(0, 0, step_s)
    begin = max(since, served.began)
    end = min(until, served.ended or until, now - REPORTING_DELAY)
    first = -int(-begin.timestamp() // step_s) * step_s
    return range(first, int(end.timestamp() // step_s) * step_s, step_s)


def percentiles(buckets: dict[int, Bucket], expected: range) -> dict[str, int | None]:
    """Return the 95th percentiles of the 5-minute rates, and the number of ``missing`` buckets.

    ``max`` is the percentile of the larger of both rates. ``expected``: the starts of the expected buckets.
    """
    return {
        "in": percentile_95(bucket.in_rate for bucket in buckets.values()),
        "out": percentile_95(bucket.out_rate for bucket in buckets.values()),
        "max": percentile_95(max(bucket.in_rate, bucket.out_rate) for bucket in buckets.values()),
        # Iterate over the counted buckets: a year has 100,000 expected buckets, and often few are stored.
        "missing": len(expected) - sum(start in expected for start in buckets),
    }


def _within(buckets: dict[int, Bucket], starts: range) -> dict[int, Bucket]:
    return {start: bucket for start, bucket in buckets.items() if start in starts}


def _instant(epoch_s: int, like: datetime) -> datetime:
    return datetime.fromtimestamp(epoch_s, tz=like.tzinfo)


SPAN = timedelta(hours=1)
STEP_S = FIVE_MINUTES.step_s
_READ = ("a_in_bytes", "z_in_bytes", "a_covered_ms", "z_covered_ms", "simulated")


@dataclass(frozen=True, slots=True)
class Recent:
    """Incoming traffic (bit/s) at each end by 5-minute bucket, oldest first; None without samples in it.

    The last bucket is not complete. Its rate is the traffic divided by the time counted so far.
    """

    a: list[float | None]
    z: list[float | None]
    simulated: bool

    @property
    def is_empty(self) -> bool:
        return not any(rate is not None for rate in (*self.a, *self.z))


def recent_of(vlls: Collection[UUID], *, now: datetime) -> dict[UUID, Recent]:
    """Return the last hour of each line. The line's graph shows the same values."""
    if not vlls:
        return {}
    first = int((now - SPAN).timestamp() // STEP_S + 1) * STEP_S
    starts = range(first, int(now.timestamp()) + 1, STEP_S)
    counted: dict[UUID, dict[int, tuple[Any, ...]]] = {vll: {} for vll in vlls}
    for vll, at, *values in five_minutes_of(vlls, starts, _READ):
        counted[vll][int(at.timestamp())] = tuple(values)
    return {vll: _recent(rows, starts) for vll, rows in counted.items()}


def _recent(rows: dict[int, tuple[Any, ...]], starts: range) -> Recent:
    a: list[float | None] = []
    z: list[float | None] = []
    for start in starts:
        a_bytes, z_bytes, a_ms, z_ms, _simulated = rows.get(start, (None, None, 0, 0, False))
        a.append(a_bytes * 8000 / a_ms if a_ms else None)
        z.append(z_bytes * 8000 / z_ms if z_ms else None)
    return Recent(a=a, z=z, simulated=any(row[-1] for row in rows.values()))


# The time after the end of a bucket when nearly all lines have been rolled up.
ROLLED_UP_AFTER = timedelta(minutes=2)
# The maximum number of rollup rows per response. PostgreSQL adds them up in a quarter of a second.
_MOST_ROWS = 200_000

# If only part of a bucket was counted for a line, the sum has its rate in that part, as the line's own graph.
_SUMS = """
SELECT extract(epoch FROM counted.start_at)::bigint,
       sum(CASE side WHEN 'a' THEN a_in_{counted} * {factor} * 1000 / nullif(a_covered_ms, 0)
                     ELSE z_in_{counted} * {factor} * 1000 / nullif(z_covered_ms, 0) END),
       sum(CASE side WHEN 'a' THEN a_out_{counted} * {factor} * 1000 / nullif(a_covered_ms, 0)
                     ELSE z_out_{counted} * {factor} * 1000 / nullif(z_covered_ms, 0) END),
       bool_or(simulated)
FROM unnest(%(vlls)s::uuid[], %(sides)s::text[]) AS line_end (vll_id, side)
CROSS JOIN LATERAL (
    SELECT * FROM {table} AS rolled_up
    WHERE rolled_up.vll_id = line_end.vll_id
      AND rolled_up.start_at >= %(since)s AND rolled_up.start_at < %(until)s
) AS counted
GROUP BY counted.start_at
"""


def port_throughput(
    *, port: Port, since: datetime, until: datetime, unit: Unit = Unit.BITS, now: datetime
) -> dict[str, Any]:
    """Return the response of ``GET /ports/<id>/throughput``, in bit/s or packet/s.

    * ``port``: ``[start of the bucket (epoch s), in, out]`` for every rolled-up bucket that touches the
      range. ``in`` comes from the customer. Both are None if no line on the port has counts in the bucket.
    * ``lines``: the number of line ends in the sum. Lines that have ended or moved away are not included.

    Raises RangeEmpty.
    """
    if since >= until:
        raise RangeEmpty
    live = VllEnd.objects.filter(port=port).exclude(vll__lifecycle__in=TERMINAL_LIFECYCLES)
    ends = list(live.values_list("vll", "side"))
    table = _table_for(since, until, len(ends), now)
    touched = starts_of(since, until, table.step_s)
    over = int((now - ROLLED_UP_AFTER).timestamp() // table.step_s) * table.step_s
    starts = range(touched.start, min(touched.stop, over), table.step_s)
    sums, simulated = _sums(ends, starts, table, unit)
    return {
        "step_s": table.step_s,
        "unit": unit.value,
        "port": [[start, *sums.get(start, (None, None))] for start in starts],
        "lines": len(ends),
        "missing": sum(start not in sums for start in starts),
        "simulated": simulated,
    }


def _sums(
    ends: list[tuple[UUID, str]], starts: range, table: Table, unit: Unit
) -> tuple[dict[int, tuple[int, int]], bool]:
    """Return the rates (in, out) by start of the bucket (epoch s), and whether any count is simulated."""
    if not ends or not starts:
        return {}, False
    parameters: dict[str, Any] = {
        "vlls": [vll for vll, _ in ends],
        "sides": [side for _, side in ends],
        "since": datetime.fromtimestamp(starts.start, tz=UTC),
        "until": datetime.fromtimestamp(starts.stop, tz=UTC),
    }
    with connection.cursor() as cursor:
        cursor.execute(_SUMS.format(counted=unit.counted, factor=unit.factor, table=table.name), parameters)
        rows = [row for row in cursor.fetchall() if row[1] is not None]
    return {at: (round(into), round(out)) for at, into, out, _ in rows}, any(row[3] for row in rows)


def _table_for(since: datetime, until: datetime, ends: int, now: datetime) -> Table:
    """Return the finest table with the whole range within _MOST_ROWS and MAX_POINTS, else the coarsest."""
    span_s = (until - since).total_seconds()

    def fits(table: Table) -> bool:
        buckets = span_s / table.step_s
        kept = since >= now - table.retention
        return kept and buckets <= MAX_POINTS and buckets * ends <= _MOST_ROWS

    return next((table for table in ROLLUPS if fits(table)), ROLLUPS[-1])


_NOW = """
SELECT sum(coalesce(a_in_bytes * 8000 / nullif(a_covered_ms, 0), 0)
           + coalesce(z_in_bytes * 8000 / nullif(z_covered_ms, 0), 0)),
       bool_or(simulated)
FROM vll_vll AS line
JOIN telemetry_five_minutes AS counted ON counted.vll_id = line.id AND counted.start_at = %(start)s
WHERE line.customer_id = %(customer)s
"""
# For each end, the last correction of the month. For each line, the larger value of its two ends.
_MONTH = """
SELECT sum(most) FROM (
    SELECT max(max_bps) AS most FROM (
        SELECT DISTINCT ON (frozen.vll_id, side) frozen.vll_id, max_bps
        FROM vll_vll AS line JOIN telemetry_monthlypercentile AS frozen ON frozen.vll_id = line.id
        WHERE line.customer_id = %(customer)s AND month = %(month)s
        ORDER BY frozen.vll_id, side, correction DESC
    ) AS ends
    GROUP BY vll_id
) AS lines
"""


@dataclass(frozen=True, slots=True)
class CustomerTraffic:
    """The traffic of all lines of a customer, in bit/s.

    ``now_bps``: the traffic that entered at both ends of all lines in the 5-minute bucket that begins at
    ``since``; None if the bucket has no counts. ``p95_bps``: the sum of the lines' 95th percentiles of
    ``month``, the last frozen month; None if the month has no values for these lines.
    """

    now_bps: int | None
    since: datetime
    simulated: bool
    p95_bps: int | None
    month: date | None


def customer_traffic(customer: Customer, *, now: datetime) -> CustomerTraffic:
    """Return the traffic of a customer's lines. It takes at most three statements."""
    step_s = FIVE_MINUTES.step_s
    over = int((now - ROLLED_UP_AFTER).timestamp() // step_s) * step_s
    since = datetime.fromtimestamp(over - step_s, tz=UTC)
    newest = FrozenMonth.objects.order_by("-month").first()
    with connection.cursor() as cursor:
        cursor.execute(_NOW, {"start": since, "customer": customer.pk})
        now_bps, simulated = cursor.fetchone()
        p95_bps = None
        if newest is not None:
            cursor.execute(_MONTH, {"month": newest.month, "customer": customer.pk})
            (p95_bps,) = cursor.fetchone()
    return CustomerTraffic(
        None if now_bps is None else round(now_bps),
        since,
        bool(simulated),
        None if p95_bps is None else round(p95_bps),
        None if newest is None else newest.month,
    )
