"""Queries of throughput."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from portal.telemetry.bucket_queries import SIDES, buckets_of, five_minutes_of, starts_of
from portal.telemetry.errors import RangeEmpty, StepRefused
from portal.telemetry.rates_and_percentiles import (
    STEPS_S,
    Bucket,
    Unit,
    automatic_step,
    merged,
    percentile_95,
    points,
)
from portal.telemetry.rollup_tables import FIVE_MINUTES, TABLES, Table, finest_kept
from portal.telemetry.rollups import REPORTING_DELAY
from portal.telemetry.time_spans import ServiceTime, service_time
from portal.vll.models import Vll

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
    if since >= until:
        raise RangeEmpty
    step_s = step_for(since, until, step_s, now)
    with_p95 = since >= now - FIVE_MINUTES.retention
    # The rows are read once, in the shorter of the two bucket lengths. The longer buckets are merged from
    # these rows.
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
    """Return the length of a bucket in seconds. Raises StepRefused if ``step_s`` is not available.

    If ``step_s`` is None, return the shortest stored step with at most MAX_POINTS points.
    """
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
    """The incoming traffic (bit/s) at each end by 5-minute bucket, oldest first; None for a bucket without
    samples.

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
