"""Passive frame loss: frames that went in at one end against those that came out at the other.

Only 5 minutes (hours, days, where no finer are stored) that were counted without a gap at both ends are
compared. What the line's own policer dropped at its entrance was beyond the bandwidth profile, and is no
loss (MEF 10.4 counts qualified frames); where a policer was counted for a part of the time only, that is a
gap. The agents' clocks and the way through the network move a few frames across the borders of a bucket:
over many buckets they cancel out; what then still came out too much is no loss.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.telemetry.bucket_queries import rolled_up, starts_of
from portal.telemetry.rollup_tables import FIVE_MINUTES, HOURS, coarsest_for, finest_kept
from portal.telemetry.throughput import RangeEmpty, expected_of
from portal.telemetry.time_in_service import ServiceTime, service_time
from portal.vll.models import Vll

_PER_END = ("in_packets", "out_packets", "violate_packets", "covered_ms", "policed_ms")
_COLUMNS = (*(f"{side}_{column}" for side in "az" for column in _PER_END), "simulated")


@dataclass(frozen=True, slots=True)
class _End:
    """The count of one end in a bucket: frames, and of which part of it (ms)."""

    into: float
    out: float
    violate: float | None
    covered_ms: int
    policed_ms: int | None

    def is_whole(self, step_s: int) -> bool:
        """Neither gaps nor twice the same time, as after a clock was set back."""
        return self.covered_ms == step_s * 1000 and self.policed_ms in (None, 0, self.covered_ms)


_Counted = dict[int, tuple[_End, _End]]


@dataclass(slots=True)
class Direction:
    """Frames of one direction; ``policed`` were dropped at the entrance as beyond the profile."""

    sent: float = 0.0
    policed: float = 0.0
    delivered: float = 0.0

    def add(self, entrance: _End, exit: _End) -> None:
        self.sent += entrance.into
        self.policed += entrance.violate or 0.0
        self.delivered += exit.out

    def as_document(self) -> dict[str, float | int | None]:
        qualified = self.sent - self.policed
        lost = max(0.0, qualified - self.delivered)
        return {
            "sent": round(self.sent),
            "policed": round(self.policed),
            "delivered": round(self.delivered),
            "loss_ratio": lost / qualified if qualified > 0 else None,
        }


def frame_loss(*, vll: Vll, since: datetime, until: datetime, now: datetime) -> dict[str, Any]:
    """The answer of ``GET /vlls/<id>/loss``, over the buckets that lie whole in the range.

    ``compared``: buckets that count; ``missing``: buckets of the range that cannot be compared.
    ``loss_ratio`` from 0 to 1 of the frames sent within the profile, None when there were none. Raises
    RangeEmpty.
    """
    if since >= until:
        raise RangeEmpty
    step_s = finest_kept(since, now=now).step_s or FIVE_MINUTES.step_s
    counted, simulated = _counted(vll, since, until, step_s)
    return _compared(service_time(vll), counted, since, until, step_s, now) | {"simulated": simulated}


def frame_loss_by_month(
    *, vll: Vll, months: list[datetime], until: datetime, now: datetime
) -> list[dict[str, Any]]:
    """As ``frame_loss`` for each of ``months`` (their first moments, oldest first), by hours, in one read."""
    step_s = max(HOURS.step_s, finest_kept(months[0], now=now).step_s)
    counted, simulated = _counted(vll, months[0], until, step_s)
    ends, served = [*months[1:], until], service_time(vll)
    return [
        _compared(served, counted, begin, end, step_s, now) | {"simulated": simulated}
        for begin, end in zip(months, ends, strict=True)
    ]


def compare(
    served: ServiceTime,
    rows: Mapping[int, Mapping[str, Any]],
    since: datetime,
    until: datetime,
    step_s: int,
    now: datetime,
) -> dict[str, Any]:
    """As ``frame_loss``, of rows that the caller has read: columns by name, by their start (epoch s)."""
    counted = {
        start: (
            _End(*(row[f"a_{name}"] for name in _PER_END)),
            _End(*(row[f"z_{name}"] for name in _PER_END)),
        )
        for start, row in rows.items()
    }
    return _compared(served, counted, since, until, step_s, now)


def _counted(vll: Vll, since: datetime, until: datetime, step_s: int) -> tuple[_Counted, bool]:
    """Both ends of the buckets that have anything, by their start (epoch s); and whether any is simulated."""
    rows = rolled_up(vll, starts_of(since, until, step_s), coarsest_for(step_s), _COLUMNS)
    width = len(_PER_END)
    counted = {start: (_End(*row[:width]), _End(*row[width : 2 * width])) for start, row in rows.items()}
    return counted, any(row[-1] for row in rows.values())


def _compared(
    served: ServiceTime, counted: _Counted, since: datetime, until: datetime, step_s: int, now: datetime
) -> dict[str, Any]:
    whole = [
        start
        for start in starts_of(since, until, step_s)
        if start >= since.timestamp()
        and start + step_s <= until.timestamp()
        and start in counted
        and all(end.is_whole(step_s) for end in counted[start])
    ]
    a_to_z, z_to_a = Direction(), Direction()
    for start in whole:
        a, z = counted[start]
        a_to_z.add(a, z)
        z_to_a.add(z, a)
    expected = set(expected_of(served, since, until, step_s, now))
    return {
        "step_s": step_s,
        "compared": len(whole),
        "missing": len(expected.difference(whole)),
        "a_to_z": a_to_z.as_document(),
        "z_to_a": z_to_a.as_document(),
    }
