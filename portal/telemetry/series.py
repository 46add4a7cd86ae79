"""Throughput arithmetic. Pure: counted bytes per bucket in, rates and percentiles out."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

STEPS_S = (10, 30, 60, 300, 900, 1800, 3600, 7200, 14400, 86400)
MAX_POINTS = 1000
PERCENTILE = 0.95


@dataclass(frozen=True, slots=True)
class Bucket:
    """Bits counted in a bucket, and for how many of its seconds something was counted at all."""

    in_bits: float
    out_bits: float
    covered_s: float

    @property
    def in_bps(self) -> float:
        return self.in_bits / self.covered_s

    @property
    def out_bps(self) -> float:
        return self.out_bits / self.covered_s


def automatic_step(range_s: float) -> int:
    """The finest step (seconds) that draws the range in at most ``MAX_POINTS``; the coarsest beyond that."""
    return next((step for step in STEPS_S if range_s / step <= MAX_POINTS), STEPS_S[-1])


def merged(buckets: Mapping[int, Bucket], step_s: int) -> dict[int, Bucket]:
    """The same counts in longer buckets of ``step_s``, which the shorter ones divide evenly."""
    longer: dict[int, Bucket] = {}
    for start, bucket in buckets.items():
        begin = start - start % step_s
        known = longer.get(begin, Bucket(0.0, 0.0, 0.0))
        longer[begin] = Bucket(
            known.in_bits + bucket.in_bits,
            known.out_bits + bucket.out_bits,
            known.covered_s + bucket.covered_s,
        )
    return longer


def points(buckets: Mapping[int, Bucket], starts: Iterable[int]) -> list[tuple[int, int | None, int | None]]:
    """``(start, in bit/s, out bit/s)`` for each start; None where nothing was counted, never zero."""
    drawn: list[tuple[int, int | None, int | None]] = []
    for start in starts:
        bucket = buckets.get(start)
        if bucket is None:
            drawn.append((start, None, None))
        else:
            drawn.append((start, round(bucket.in_bps), round(bucket.out_bps)))
    return drawn


def percentile_95(rates: Iterable[float]) -> int | None:
    """The nearest-rank 95th percentile, as transit is billed: the top 5 % of the buckets are left out."""
    ordered = sorted(rates)
    return round(ordered[math.ceil(len(ordered) * PERCENTILE) - 1]) if ordered else None
