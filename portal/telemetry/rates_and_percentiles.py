"""Throughput arithmetic: rates and percentiles from counted bytes per bucket, and the units of graphs."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum


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
