"""What many lines carried in the last hour: a page of a list in a fixed number of statements."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from portal.telemetry.buckets import counted_now
from portal.telemetry.tables import FIVE_MINUTES

SPAN = timedelta(hours=1)
STEP_S = FIVE_MINUTES.step_s
_READ = ("a_in_bytes", "z_in_bytes", "a_covered_ms", "z_covered_ms", "simulated")
_MARKED = (
    "SELECT DISTINCT vll_id, start_at FROM telemetry_stale_bucket"
    " WHERE vll_id = ANY(%(vlls)s) AND step_s = %(step)s AND start_at >= %(since)s AND start_at < %(until)s"
)
_ROLLED_UP = (
    f"SELECT vll_id, start_at, {', '.join(_READ)} FROM telemetry_five_minutes"  # noqa: S608 - our own names
    " WHERE vll_id = ANY(%(vlls)s) AND start_at >= %(since)s AND start_at < %(until)s"
)


@dataclass(frozen=True, slots=True)
class Recent:
    """bit/s that came in at each end, by 5 minutes, oldest first; None where nothing was counted.

    The last 5 minutes have only begun: what they have so far counts over the time that it was counted in.
    """

    a: list[float | None]
    z: list[float | None]
    simulated: bool

    @property
    def is_empty(self) -> bool:
        return not any(rate is not None for rate in (*self.a, *self.z))


def recent_of(vlls: Collection[UUID], *, now: datetime) -> dict[UUID, Recent]:
    """By line, the last hour; every line has an answer, and each says what the line's own graph does."""
    if not vlls:
        return {}
    first = int((now - SPAN).timestamp() // STEP_S + 1) * STEP_S
    starts = range(first, int(now.timestamp()) + 1, STEP_S)
    counted: dict[UUID, dict[int, tuple[Any, ...]]] = {vll: {} for vll in vlls}
    for vll, at, *values in _rows(list(vlls), starts):
        counted[vll][int(at.timestamp())] = tuple(values)
    return {vll: _recent(rows, starts) for vll, rows in counted.items()}


def _rows(vlls: list[UUID], starts: range) -> list[tuple[Any, ...]]:
    asked: dict[str, Any] = {
        "vlls": vlls,
        "step": STEP_S,
        "since": datetime.fromtimestamp(starts.start, tz=UTC),
        "until": datetime.fromtimestamp(starts.stop, tz=UTC),
    }
    with transaction.atomic(), connection.cursor() as cursor:
        # The marks come first, as for a single line (buckets.py): what is rolled up after this look can still
        # be read where it was.
        cursor.execute(_MARKED, asked)
        marked = set(cursor.fetchall())
        cursor.execute(_ROLLED_UP, asked)
        rows = [row for row in cursor.fetchall() if row[:2] not in marked]
        return rows + counted_now(cursor, sorted(marked), _READ) if marked else rows


def _recent(rows: dict[int, tuple[Any, ...]], starts: range) -> Recent:
    a: list[float | None] = []
    z: list[float | None] = []
    for start in starts:
        a_bytes, z_bytes, a_ms, z_ms, _simulated = rows.get(start, (None, None, 0, 0, False))
        a.append(a_bytes * 8000 / a_ms if a_ms else None)
        z.append(z_bytes * 8000 / z_ms if z_ms else None)
    return Recent(a=a, z=z, simulated=any(row[-1] for row in rows.values()))
