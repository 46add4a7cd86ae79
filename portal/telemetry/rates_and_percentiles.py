"""Throughput arithmetic. Pure: counted bytes per bucket in, rates and percentiles out."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

STEPS_S = (10, 30, 60, 300, 900, 1800, 3600, 7200, 14400, 86400)
MAX_POINTS = 1000
PERCENTILE = 0.95


@dataclass(frozen=True, slots=True)
class Bucket:
    """Bits, or packets, counted in a bucket, and in how many of its seconds anything was counted at all."""

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
    """The finest step (seconds) from ``finest_s`` on that draws at most ``MAX_POINTS``; else the coarsest."""
    return next((step for step in STEPS_S if step >= finest_s and range_s / step <= MAX_POINTS), STEPS_S[-1])


def merged(buckets: Mapping[int, Bucket], step_s: int) -> dict[int, Bucket]:
    """The same counts in longer buckets of ``step_s``, which the shorter ones divide evenly."""
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
    """``(start, in, out)`` per second for each start; None where nothing was counted, never zero."""
    drawn: list[tuple[int, int | None, int | None]] = []
    for start in starts:
        bucket = buckets.get(start)
        if bucket is None:
            drawn.append((start, None, None))
        else:
            drawn.append((start, round(bucket.in_rate), round(bucket.out_rate)))
    return drawn


def percentile_95(rates: Iterable[float]) -> int | None:
    """The 95th percentile by nearest rank, as transit is billed.

    Of n buckets the top 5 %, rounded down, are left out, and the highest of the rest is the answer: the
    one at rank ceil(0.95 n). Buckets that are missing are not counted as zero; they are not in n.
    """
    ordered = sorted(rates)
    return round(ordered[math.ceil(len(ordered) * PERCENTILE) - 1]) if ordered else None
