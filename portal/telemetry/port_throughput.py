"""Throughput of a port: the sum of its lines' throughput at their ends on the port.

A port may have thousands of lines. Therefore only rollups are read. Samples that are not yet rolled up do not
count. The newest bucket appears ROLLED_UP_AFTER its end, when nearly all lines are rolled up.
"""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from portal.inventory.models import Port
from portal.telemetry.bucket_queries import starts_of
from portal.telemetry.errors import RangeEmpty
from portal.telemetry.graph_units import Unit
from portal.telemetry.rates_and_percentiles import MAX_POINTS
from portal.telemetry.rollup_tables import ROLLUPS, Table
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
