"""Reading throughput: samples cut into buckets by the time that they share with them."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, transaction

from portal.core.errors import DomainError
from portal.telemetry.operations import LONGEST_SAMPLE
from portal.telemetry.series import STEPS_S, Bucket, automatic_step, merged, percentile_95, points
from portal.vll.models import Vll

P95_BUCKET_S = 300
MAX_POINTS_ASKED = 10_000
# A sample is measured every 10 s and reported soon after: what is younger is not missing yet.
REPORTING_DELAY = timedelta(seconds=30)
_SIDES = ("a", "z")


@dataclass(eq=False)
class RangeEmpty(DomainError):
    """The range ends before it begins."""

    field: str = "to"


@dataclass(eq=False)
class StepRefused(DomainError):
    """The step is not one that is offered, or draws too many points. Seconds."""

    step_s: int
    offered_s: tuple[int, ...] = STEPS_S
    maximum_points: int = MAX_POINTS_ASKED
    field: str = "step"


def throughput(
    *, vll: Vll, since: datetime, until: datetime, step_s: int | None = None, now: datetime
) -> dict[str, Any]:
    """The answer of ``GET /vlls/<id>/throughput``, in bit/s.

    ``a_end`` and ``z_end``: ``[start of the bucket (epoch s), in, out]`` for every bucket that touches the
    range, None where nothing was counted. ``p95``: per end the 95th percentile of 5-minute buckets of
    ``in``, ``out`` and the larger of both, and how many such buckets are ``missing``. ``missing``: buckets
    of this step in which at least one end has nothing; time before the VLL was made, and the last moments
    that cannot have been reported yet, are not counted. Raises RangeEmpty or StepRefused.
    """
    if since >= until:
        raise RangeEmpty
    range_s = (until - since).total_seconds()
    if step_s is None:
        step_s = automatic_step(range_s)
    elif step_s not in STEPS_S or range_s / step_s > MAX_POINTS_ASKED:
        raise StepRefused(step_s=step_s)
    starts = _starts(since, until, step_s)
    # The samples are read once, in the shorter of both buckets; the longer ones are made of them.
    counted, simulated = buckets_of(vll, since, until, min(step_s, P95_BUCKET_S))
    drawn = {side: merged(counted[side], step_s) for side in _SIDES}
    for_p95 = {side: merged(counted[side], P95_BUCKET_S) for side in _SIDES}
    expected = _expected(vll, since, until, step_s, now)
    return {
        "step_s": step_s,
        "unit": "bit/s",
        "a_end": points(drawn["a"], starts),
        "z_end": points(drawn["z"], starts),
        "p95": {
            f"{side}_end": _p95(for_p95[side], _expected(vll, since, until, P95_BUCKET_S, now))
            for side in _SIDES
        },
        "missing": sum(any(start not in drawn[side] for side in _SIDES) for start in expected),
        "simulated": simulated,
    }


def buckets_of(
    vll: Vll, since: datetime, until: datetime, step_s: int
) -> tuple[dict[str, dict[int, Bucket]], bool]:
    """Per side, the buckets that have anything, by their start (epoch s); and whether any of it is simulated.

    A sample counts evenly over its interval, and only with the part that lies within the range.
    """
    origin = _starts(since, until, step_s).start
    asked: dict[str, Any] = {
        "vll": vll.pk,
        "since": since,
        "until": until,
        "step": step_s,
        "origin": datetime.fromtimestamp(origin, tz=UTC),
        "reach": until + LONGEST_SAMPLE,
    }
    found: dict[str, dict[int, Bucket]] = {side: {} for side in _SIDES}
    any_simulated = False
    with transaction.atomic(), connection.cursor() as cursor:
        # PostgreSQL takes each series for 1,000 rows and would compile for longer than it then runs.
        cursor.execute("SET LOCAL jit = off")
        cursor.execute(_BUCKETS, asked)
        for side, number, in_bits, out_bits, covered_s, simulated in cursor.fetchall():
            found[side][origin + number * step_s] = Bucket(in_bits, out_bits, covered_s)
            any_simulated = any_simulated or simulated
    return found, any_simulated


# Seconds since the first bucket: small numbers keep their microseconds as floats. The bound on to_at lets
# PostgreSQL leave out the other days' partitions.
_BUCKETS = """
WITH clipped AS (
    SELECT side, simulated, in_bytes, out_bytes,
           extract(epoch FROM to_at - from_at)::float8 AS length_s,
           extract(epoch FROM greatest(from_at, %(since)s) - %(origin)s)::float8 AS first,
           extract(epoch FROM least(to_at, %(until)s) - %(origin)s)::float8 AS last
    FROM telemetry_sample
    WHERE vll_id = %(vll)s AND to_at > %(since)s AND to_at <= %(reach)s AND from_at < %(until)s
), shared AS (
    SELECT side, simulated, in_bytes, out_bytes, length_s, number,
           least(last, (number + 1) * %(step)s) - greatest(first, number * %(step)s) AS overlap_s
    FROM clipped, generate_series(floor(first / %(step)s)::int, ceil(last / %(step)s)::int - 1) AS number
)
SELECT side, number, sum(8 * in_bytes * overlap_s / length_s), sum(8 * out_bytes * overlap_s / length_s),
       sum(overlap_s), bool_or(simulated)
FROM shared WHERE overlap_s > 0 GROUP BY side, number
"""


def _starts(since: datetime, until: datetime, step_s: int) -> range:
    first = int(since.timestamp() // step_s) * step_s
    last = -int(-until.timestamp() // step_s) * step_s
    return range(first, last, step_s)


def _expected(vll: Vll, since: datetime, until: datetime, step_s: int, now: datetime) -> range:
    """The buckets that ought to have something in them by now."""
    begin = max(since, vll.created_at)
    end = min(until, now - REPORTING_DELAY)
    first = -int(-begin.timestamp() // step_s) * step_s
    return range(first, int(end.timestamp() // step_s) * step_s, step_s)


def _p95(buckets: dict[int, Bucket], expected: range) -> dict[str, int | None]:
    return {
        "in": percentile_95(bucket.in_bps for bucket in buckets.values()),
        "out": percentile_95(bucket.out_bps for bucket in buckets.values()),
        "max": percentile_95(max(bucket.in_bps, bucket.out_bps) for bucket in buckets.values()),
        "missing": sum(start not in buckets for start in expected),
    }
