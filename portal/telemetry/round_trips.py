"""Round trips between two routers: storage of measurements, and queries of a line's latency."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from portal.core.db.statements import rows_of
from portal.telemetry.buckets import STEPS_S as _ALL_STEPS_S
from portal.telemetry.buckets import starts_of, time_of
from portal.telemetry.partitioned_tables import ROUND_TRIPS, coarsest_for, partitions_ensure
from portal.telemetry.throughput import expected_of, step_for
from portal.telemetry.time_spans import service_time
from portal.vll.models import TunnelPath, Vll
from portal.vll.path_status import path_of

# The steps of graphs that are a multiple of a minute.
STEPS_S = tuple(step for step in _ALL_STEPS_S if step >= ROUND_TRIPS[0].step_s)


@dataclass(frozen=True, slots=True)
class RoundTripTimes:
    """Numbers of sent and returned packets, and round-trip times in µs, which are 0 if no packet returned."""

    sent: int
    received: int
    min_us: int
    mean_us: int
    max_us: int
    simulated: bool = False


_ADD = """
INSERT INTO {table} AS known (start_at, path_id, sent, received, min_us, sum_us, max_us, simulated)
VALUES (date_bin(%(step)s, %(due)s, timestamptz 'epoch'), %(path)s, %(sent)s, %(received)s,
        %(min_us)s, %(sum_us)s, %(max_us)s, %(simulated)s)
ON CONFLICT (path_id, start_at) DO UPDATE SET
    sent = known.sent + EXCLUDED.sent, received = known.received + EXCLUDED.received,
    min_us = least(known.min_us, EXCLUDED.min_us), max_us = greatest(known.max_us, EXCLUDED.max_us),
    sum_us = coalesce(known.sum_us + EXCLUDED.sum_us, known.sum_us, EXCLUDED.sum_us),
    simulated = known.simulated OR EXCLUDED.simulated
"""


@transaction.atomic
def round_trips_store(*, path: UUID, times: RoundTripTimes, due: datetime, now: datetime) -> None:
    """Store a measurement that was made at ``now``. It counts for the minute of ``due``."""
    counted: dict[str, Any] = {**asdict(times), "sum_us": times.mean_us * times.received}
    if not times.received:
        counted |= dict.fromkeys(("min_us", "mean_us", "max_us", "sum_us"))
    newest = {name: counted[name] for name in ("sent", "received", "min_us", "mean_us", "max_us")}
    TunnelPath.objects.filter(pk=path).update(round_trips_at=now, **newest)
    added = counted | {"path": path, "due": due}
    with connection.cursor() as cursor:
        for table in ROUND_TRIPS:
            partitions_ensure([due.astimezone(UTC).date()], table)
            cursor.execute(_ADD.format(table=table.name), added | {"step": timedelta(seconds=table.step_s)})


_READ = """
SELECT extract(epoch FROM longer_at)::bigint,
       min(min_us), round(sum(sum_us) / nullif(sum(received), 0))::bigint, max(max_us),
       sum(sent), sum(received), bool_or(simulated)
FROM (SELECT date_bin(%(step)s, start_at, timestamptz 'epoch') AS longer_at, *
      FROM {table} WHERE path_id = %(path)s AND start_at >= %(since)s AND start_at < %(until)s) AS shorter
GROUP BY longer_at
"""


def latency(
    *, vll: Vll, since: datetime, until: datetime, step_s: int | None = None, now: datetime
) -> dict[str, Any]:
    """Return the response of ``GET /vlls/<id>/latency``.

    The round trips are those between the two routers where the line ends now.

    * ``round_trips``: ``[start of the bucket (epoch s), min, mean, max (µs), lost packets]`` for every bucket
      that touches the range. The times are None if no packet returned. All four values are None if no packet
      was sent.
    * ``missing``: the number of buckets of the line's time in service in which no packet was sent.

    Raises RangeEmpty or StepRefused.
    """
    step_s = step_for(since, until, step_s, now, ROUND_TRIPS)
    starts = starts_of(since, until, step_s)
    path = path_of(vll)
    rows = {} if path is None else _rows(path, starts)
    expected = expected_of(service_time(vll), since, until, step_s, now) if path else ()
    return {
        "step_s": step_s,
        "round_trips": [
            (start, row[0], row[1], row[2], row[3] - row[4])
            if (row := rows.get(start))
            else (start, None, None, None, None)
            for start in starts
        ],
        "missing": sum(start not in rows for start in expected),
        "simulated": any(row[5] for row in rows.values()),
    }


def _rows(path: TunnelPath, starts: range) -> dict[int, tuple[Any, ...]]:
    table = coarsest_for(starts.step, ROUND_TRIPS)
    parameters: dict[str, Any] = {
        "path": path.pk,
        "step": timedelta(seconds=starts.step),
        "since": time_of(starts.start),
        "until": time_of(starts.stop),
    }
    return {row[0]: row[1:] for row in rows_of(_READ.format(table=table.name), parameters)}
