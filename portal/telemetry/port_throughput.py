"""Throughput of a port, and of all ports of a customer: the sum of their lines' throughput.

A port may have thousands of lines. Therefore only rollups are read. Samples that are not yet rolled up do not
count. The newest bucket appears ROLLED_UP_AFTER its end, when nearly all lines are rolled up.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from portal.accounts.models import Customer
from portal.inventory.models import Port
from portal.telemetry.bucket_queries import starts_of
from portal.telemetry.errors import RangeEmpty
from portal.telemetry.models import FrozenMonth
from portal.telemetry.rates_and_percentiles import MAX_POINTS, Unit
from portal.telemetry.rollup_tables import FIVE_MINUTES, ROLLUPS, Table
from portal.vll.models import VllEnd
from portal.vll.states import TERMINAL_LIFECYCLES

# The time after the end of a bucket when nearly all lines have been rolled up.
ROLLED_UP_AFTER = timedelta(minutes=2)
# The maximum number of rollup rows per response. PostgreSQL adds them up in a quarter of a second.
_MOST_ROWS = 200_000

# If a line was counted in only a part of a bucket, the sum contains its rate in that part, as the line's own
# graph does.
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
    """Return the finest rollup table that has the whole range without too many rows or points.

    The limits are _MOST_ROWS and MAX_POINTS. Return the coarsest table if none fits.
    """
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
