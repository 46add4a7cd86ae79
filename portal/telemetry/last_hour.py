"""The traffic of many lines in the last hour, for lists. The number of statements is fixed."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from portal.telemetry.bucket_queries import five_minutes_of
from portal.telemetry.rollup_tables import FIVE_MINUTES

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
