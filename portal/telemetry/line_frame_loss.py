"""Passive frame loss: frames that went in at one end against those that came out at the other.

Only 5 minutes (hours, days, where no finer are stored) that were counted without a gap at both ends are
compared. What the line's own policer dropped at its entrance was beyond the bandwidth profile, and is no
loss (MEF 10.4 counts qualified frames); where a policer was counted for a part of the time only, that is a
gap.

No two ends are read at the same instant. A sample that reaches over the border of a bucket counts evenly on
both sides of it, at each end by other intervals. Without any loss these two estimates of what had passed by
the border differ by no more than the frames of one sample, the larger of both ends': the weights with which
they take a frame differ by less than one, and where one end takes more and where it takes less, these weights
add up to less than one. Borders between compared buckets cancel out, so a range has two for each gap and two
more. The agents' clocks move the borders as well. Below the sum (``bound_ratio``) nothing can be said but
that the loss is less; what came out too much is no loss.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from portal.telemetry.bucket_queries import rolled_up, starts_of
from portal.telemetry.rollup_tables import FIVE_MINUTES, HOURS, coarsest_for, finest_kept
from portal.telemetry.throughput import RangeEmpty, expected_of
from portal.telemetry.time_in_service import ServiceTime, service_time
from portal.vll.models import Vll, VllEnd

_PER_END = (
    "in_packets",
    "out_packets",
    "violate_packets",
    "covered_ms",
    "policed_ms",
    "in_most",
    "out_most",
)
_COLUMNS = (*(f"{side}_{column}" for side in "az" for column in _PER_END), "simulated")
# Agents read every 10 s. While VPP does not answer, one sample covers up to 35 s
# (docs/reference/agent-reports.md).
_INTERVAL_S = 10
_LONGEST_S = 35


@dataclass(frozen=True, slots=True)
class _End:
    """The count of one end in a bucket: frames, of which part of it (ms), and the most of one sample (None:
    not kept then)."""

    into: float
    out: float
    violate: float | None
    covered_ms: int
    policed_ms: int | None
    in_most: float | None
    out_most: float | None

    def is_whole(self, step_s: int) -> bool:
        """Neither gaps nor twice the same time, as after a clock was set back."""
        return self.covered_ms == step_s * 1000 and self.policed_ms in (None, 0, self.covered_ms)

    def most_in(self, step_s: int) -> float:
        """Frames within the profile of one sample, at most."""
        return self._most(self.into - (self.violate or 0.0), step_s) if self.in_most is None else self.in_most

    def most_out(self, step_s: int) -> float:
        return self._most(self.out, step_s) if self.out_most is None else self.out_most

    @staticmethod
    def _most(frames: float, step_s: int) -> float:
        return frames * _LONGEST_S / step_s


_Counted = dict[int, tuple[_End, _End]]


@dataclass(slots=True)
class Direction:
    """Frames of one direction; ``policed`` were dropped at the entrance as beyond the profile, and so many as
    ``astray`` may be counted beyond the range at one end and within it at the other."""

    sent: float = 0.0
    policed: float = 0.0
    delivered: float = 0.0
    astray: float = 0.0

    def add(self, entrance: _End, exit: _End) -> None:
        self.sent += entrance.into
        self.policed += entrance.violate or 0.0
        self.delivered += exit.out

    def add_border(self, entrance: _End, exit: _End, step_s: int, clocks_apart_s: float) -> None:
        """Add what this border of a compared bucket, with a gap behind it, may move."""
        most = max(entrance.most_in(step_s), exit.most_out(step_s))
        self.astray += most * (1 + clocks_apart_s / _INTERVAL_S)

    def as_document(self) -> dict[str, float | int | None]:
        qualified = self.sent - self.policed
        lost = max(0.0, qualified - self.delivered)
        return {
            "sent": round(self.sent),
            "policed": round(self.policed),
            "delivered": round(self.delivered),
            "loss_ratio": lost / qualified if qualified > 0 else None,
            "bound_ratio": min(1.0, self.astray / qualified) if qualified > 0 else None,
        }


def frame_loss(*, vll: Vll, since: datetime, until: datetime, now: datetime) -> dict[str, Any]:
    """The answer of ``GET /vlls/<id>/loss``, over the buckets that lie whole in the range.

    ``compared``: buckets that count; ``missing``: buckets of the range that cannot be compared.
    ``loss_ratio`` from 0 to 1 of the frames sent within the profile, None when there were none; below
    ``bound_ratio`` it tells no more than that. Raises RangeEmpty.
    """
    if since >= until:
        raise RangeEmpty
    step_s = finest_kept(since, now=now).step_s or FIVE_MINUTES.step_s
    counted, simulated = _counted(vll, since, until, step_s)
    apart_s = clocks_apart_s([vll.pk])[vll.pk]
    return _compared(service_time(vll), counted, since, until, step_s, now, apart_s) | {
        "simulated": simulated
    }


def frame_loss_by_month(
    *, vll: Vll, months: list[datetime], until: datetime, now: datetime
) -> list[dict[str, Any]]:
    """As ``frame_loss`` for each of ``months`` (their first moments, oldest first), by hours, in one read."""
    step_s = max(HOURS.step_s, finest_kept(months[0], now=now).step_s)
    counted, simulated = _counted(vll, months[0], until, step_s)
    ends, served, apart_s = [*months[1:], until], service_time(vll), clocks_apart_s([vll.pk])[vll.pk]
    return [
        _compared(served, counted, begin, end, step_s, now, apart_s) | {"simulated": simulated}
        for begin, end in zip(months, ends, strict=True)
    ]


def compare(
    served: ServiceTime,
    rows: Mapping[int, Mapping[str, Any]],
    since: datetime,
    until: datetime,
    step_s: int,
    now: datetime,
    apart_s: float,
) -> dict[str, Any]:
    """As ``frame_loss``, of rows that the caller has read: columns by name, by their start (epoch s)."""
    counted = {
        start: (
            _End(*(row[f"a_{name}"] for name in _PER_END)),
            _End(*(row[f"z_{name}"] for name in _PER_END)),
        )
        for start, row in rows.items()
    }
    return _compared(served, counted, since, until, step_s, now, apart_s)


def clocks_apart_s(vlls: Collection[UUID]) -> dict[UUID, float]:
    """By line, how far apart the clocks of its ends' agents are by their newest reports; 0 where unknown."""
    offsets: dict[UUID, list[int]] = {vll: [] for vll in vlls}
    clocks = VllEnd.objects.filter(vll__in=vlls, port__router__agent_clock__isnull=False)
    for vll, offset_ms in clocks.values_list("vll", "port__router__agent_clock__offset_ms"):
        offsets[vll].append(offset_ms)
    return {vll: (max(found) - min(found)) / 1000 if found else 0.0 for vll, found in offsets.items()}


def _counted(vll: Vll, since: datetime, until: datetime, step_s: int) -> tuple[_Counted, bool]:
    """Both ends of the buckets that have anything, by their start (epoch s); and whether any is simulated."""
    rows = rolled_up(vll, starts_of(since, until, step_s), coarsest_for(step_s), _COLUMNS)
    width = len(_PER_END)
    counted = {start: (_End(*row[:width]), _End(*row[width : 2 * width])) for start, row in rows.items()}
    return counted, any(row[-1] for row in rows.values())


def _compared(
    served: ServiceTime,
    counted: _Counted,
    since: datetime,
    until: datetime,
    step_s: int,
    now: datetime,
    apart_s: float,
) -> dict[str, Any]:
    whole = [
        start
        for start in starts_of(since, until, step_s)
        if start >= since.timestamp()
        and start + step_s <= until.timestamp()
        and start in counted
        and all(end.is_whole(step_s) for end in counted[start])
    ]
    a_to_z, z_to_a, compared = Direction(), Direction(), set(whole)
    for start in whole:
        a, z = counted[start]
        a_to_z.add(a, z)
        z_to_a.add(z, a)
        for beside in (start - step_s, start + step_s):
            if beside not in compared:
                a_to_z.add_border(a, z, step_s, apart_s)
                z_to_a.add_border(z, a, step_s, apart_s)
    expected = set(expected_of(served, since, until, step_s, now))
    return {
        "step_s": step_s,
        "compared": len(whole),
        "missing": len(expected.difference(whole)),
        "a_to_z": a_to_z.as_document(),
        "z_to_a": z_to_a.as_document(),
    }
