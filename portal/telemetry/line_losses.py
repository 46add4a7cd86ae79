"""Passive frame loss: customer frames that entered at one end, compared with those that left at the other.

Only buckets that were counted without a gap at both ends are compared. A bucket lasts 5 minutes, or an hour
or a day if no shorter buckets are stored. Frames that the line's own policer dropped at the entrance exceeded
the bandwidth profile and do not count as lost (MEF 10.4 counts qualified frames). A bucket also has a gap if
the policer was counted for only a part of the bucket.

The two ends are never read at the same instant. A sample that crosses the border of a bucket is divided
between the two buckets in proportion to time, and the two ends have different sampling intervals. Each end
therefore gives a different estimate of the frames before the border.

Without loss, the two estimates differ by at most the number of frames in one sample, at the end whose sample
has more frames. The reason: at each end, a frame counts before the border with a weight from 0 to 1. Only
frames of these two samples can have different weights at the two ends, and the two weights of a frame differ
by less than one. If each sample has frames that the other sample lacks, the differences of these two groups
of frames add up to less than one.

The error at a border between two compared buckets cancels out. A range therefore has two borders with an
error, and each gap in it adds two more. Offsets between the agents' clocks also move the borders.
``bound_ratio`` is the sum of these errors, as a share of the frames. A measured loss below ``bound_ratio``
only shows that the loss is less than ``bound_ratio``. If more frames left than entered, the loss is 0.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Max, Min

from portal.telemetry.buckets import SIDES, Columns, Rows, rolled_up, starts_of
from portal.telemetry.errors import RangeEmpty
from portal.telemetry.partitioned_tables import FIVE_MINUTES, HOURS, ROLLUPS, Table, coarsest_for, finest_kept
from portal.telemetry.rollups import COLOURS
from portal.telemetry.throughput import expected_of
from portal.telemetry.time_spans import ServiceTime, service_time
from portal.vll.models import Vll, VllEnd

_FRAMES_PER_END = (
    "in_packets",
    "out_packets",
    "violate_packets",
    "covered_ms",
    "policed_ms",
    "in_most",
    "out_most",
)
# Agents read counters every 10 s. While VPP does not respond, one sample covers up to 35 s
# (docs/reference/agent-reports.md).
_INTERVAL_S = 10
_LONGEST_S = 35


@dataclass(frozen=True, slots=True)
class EndCount:
    """The count of one end in a bucket: frames, covered time (ms), and the most frames in one sample.

    ``in_most`` and ``out_most`` are None in buckets from before these columns existed.
    """

    into: float
    out: float
    violate: float | None
    covered_ms: int
    policed_ms: int | None
    in_most: float | None
    out_most: float | None

    def is_whole(self, step_s: int) -> bool:
        """Return whether the bucket has no gaps and no overlaps, which result from a clock set back."""
        return self.covered_ms == step_s * 1000 and self.policed_ms in (None, 0, self.covered_ms)

    def most_in(self, step_s: int) -> float:
        """Return the most frames within the profile in one sample, or an estimate if it is not stored."""
        return self._most(self.into - (self.violate or 0.0), step_s) if self.in_most is None else self.in_most

    def most_out(self, step_s: int) -> float:
        return self._most(self.out, step_s) if self.out_most is None else self.out_most

    @staticmethod
    def _most(frames: float, step_s: int) -> float:
        return frames * _LONGEST_S / step_s


Counted = dict[int, tuple[EndCount, EndCount]]


@dataclass(slots=True)
class Direction:
    """The frame counts of one direction.

    ``policed``: frames that the policer dropped at the entrance because they exceeded the profile.
    ``astray``: the largest possible number of frames that count outside the range at one end, and inside the
    range at the other end.
    """

    sent: float = 0.0
    policed: float = 0.0
    delivered: float = 0.0
    astray: float = 0.0

    def add(self, entrance: EndCount, exit: EndCount) -> None:
        self.sent += entrance.into
        self.policed += entrance.violate or 0.0
        self.delivered += exit.out

    def add_border(self, entrance: EndCount, exit: EndCount, step_s: int, clocks_apart_s: float) -> None:
        """Add the possible error at a border of a bucket whose neighbour there is not compared."""
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
    """Return the response of ``GET /vlls/<id>/loss``, over the buckets that lie completely in the range.

    ``missing``: the number of expected buckets that cannot be compared. ``loss_ratio``: the lost part of the
    frames that were sent within the profile; None if none was sent. Raises RangeEmpty.
    """
    if since >= until:
        raise RangeEmpty
    step_s = finest_kept(since, now=now).step_s or FIVE_MINUTES.step_s
    counted, simulated = _counted(vll, since, until, step_s)
    return compare(service_time(vll), counted, since, until, step_s, now, _apart_s(vll)) | {
        "simulated": simulated
    }


def frame_loss_by_month(
    *, vll: Vll, months: list[datetime], until: datetime, now: datetime
) -> list[dict[str, Any]]:
    """Return the result of ``frame_loss`` for each month, with one query.

    ``months``: the first moments of the months, oldest first. The last month ends at ``until``. The compared
    buckets are hours, or days if the hours of the first month are no longer stored.
    """
    step_s = max(HOURS.step_s, finest_kept(months[0], now=now).step_s)
    counted, simulated = _counted(vll, months[0], until, step_s)
    ends, served, apart_s = [*months[1:], until], service_time(vll), _apart_s(vll)
    return [
        compare(served, counted, begin, end, step_s, now, apart_s) | {"simulated": simulated}
        for begin, end in zip(months, ends, strict=True)
    ]


def _apart_s(vll: Vll) -> float:
    """Return the difference (s) between the sample times at the two ends in the newest reports, or 0."""
    offset = "port__router__agent_clock__sample_offset_ms"
    ends = VllEnd.objects.filter(vll=vll, port__router__agent_clock__isnull=False)
    found = ends.aggregate(most=Max(offset), least=Min(offset))
    return (found["most"] - found["least"]) / 1000 if found["most"] is not None else 0.0


def _counted(vll: Vll, since: datetime, until: datetime, step_s: int) -> tuple[Counted, bool]:
    """Return both ends of the non-empty buckets by their start (epoch s), and whether any is simulated."""
    a, z, simulated = _of_ends(vll, since, until, coarsest_for(step_s), _FRAMES_PER_END, step_s)
    return {start: (EndCount(*a[start]), EndCount(*z[start])) for start in a}, any(simulated.values())


def _of_ends(
    vll: Vll, since: datetime, until: datetime, table: Table, columns: Columns, step_s: int
) -> tuple[Rows, Rows, dict[int, bool]]:
    """Return ``columns`` of the A end and of the Z end, and the simulated buckets, by start (epoch s)."""
    both = (*(f"{side}_{column}" for side in SIDES for column in columns), "simulated")
    rows, width = rolled_up(vll, starts_of(since, until, step_s), table, both), len(columns)
    return (
        {start: row[:width] for start, row in rows.items()},
        {start: row[width:-1] for start, row in rows.items()},
        {start: row[-1] for start, row in rows.items()},
    )


def _finest(since: datetime, now: datetime) -> Table:
    """Return the finest table of buckets that still has all data from ``since`` on."""
    finest = finest_kept(since, now=now)
    return finest if finest in ROLLUPS else FIVE_MINUTES


def compare(
    served: ServiceTime,
    counted: Counted,
    since: datetime,
    until: datetime,
    step_s: int,
    now: datetime,
    apart_s: float,
) -> dict[str, Any]:
    """Return the result of ``frame_loss`` for counts of A and Z, whose sample times differ by ``apart_s``."""
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
        for neighbour in (start - step_s, start + step_s):
            if neighbour not in compared:
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


_DROPS_PER_END = ("in_drops", "violate_packets", "out_drops")


@dataclass(frozen=True, slots=True)
class EndDrops:
    """The dropped frames of an end; None if there are no counts of them.

    ``sent_in``: frames from the customer that VPP dropped, without the frames that the policer dropped.
    ``for_customer``: frames for the customer that VPP dropped instead of sending them out of the port.
    """

    sent_in: int | None
    for_customer: int | None

    def as_document(self) -> dict[str, int | None]:
        return {"dropped_in": self.sent_in, "dropped_out": self.for_customer}

    @property
    def is_known(self) -> bool:
        return self.sent_in is not None or self.for_customer is not None

    @property
    def any(self) -> bool:
        return bool(self.sent_in or self.for_customer)


def end_drops(*, vll: Vll, since: datetime, until: datetime, now: datetime) -> dict[str, EndDrops]:
    """Return the drops by side, over all buckets that touch the range.

    The buckets are the finest ones that are stored for the range, but not shorter than 5 minutes. If an end
    has a policer, its incoming drops only include buckets with counts of the policer. In a bucket without
    these counts, the policer may have caused the drops.
    """
    table = _finest(since, now)
    *ends, _ = _of_ends(vll, since, until, table, _DROPS_PER_END, table.step_s)
    found = {}
    for side, rows in zip(SIDES, ends, strict=True):
        counted = list(rows.values())
        is_policed = any(violate is not None for _, violate, _ in counted)
        sent_in = [
            max(0.0, drops - (violate or 0.0))
            for drops, violate, _ in counted
            if drops is not None and not (is_policed and violate is None)
        ]
        for_customer = [drops for _, _, drops in counted if drops is not None]
        found[side] = EndDrops(
            round(sum(sent_in)) if sent_in else None, round(sum(for_customer)) if for_customer else None
        )
    return found


_MEASURES = ("bytes", "packets")
# The columns of an end's policer, grouped by colour. The last column is the counted time (ms).
_POLICED_PER_END = (*(f"{colour}_{what}" for colour in COLOURS for what in _MEASURES), "policed_ms")


def policed(*, vll: Vll, since: datetime, until: datetime, now: datetime) -> dict[str, Any]:
    """Return the response of ``GET /vlls/<id>/policing``, over the buckets that touch the range.

    The counts of an end are None if no policer was counted there. Raises RangeEmpty.
    """
    if since >= until:
        raise RangeEmpty
    table = _finest(since, now)
    a, z, simulated = _of_ends(vll, since, until, table, _POLICED_PER_END, table.step_s)
    return {
        "step_s": table.step_s,
        "a_end": _policer_summary([row for row in a.values() if row[-1]]),
        "z_end": _policer_summary([row for row in z.values() if row[-1]]),
        "simulated": any(simulated[start] for start in a if a[start][-1] or z[start][-1]),
    }


def _policer_summary(counted: list[tuple[Any, ...]]) -> dict[str, Any]:
    if not counted:
        return {"counted_s": 0, **dict.fromkeys(COLOURS), "violate_ratio": None}
    totals = [round(sum(row[at] for row in counted)) for at in range(len(COLOURS) * len(_MEASURES))]
    colours = {
        colour: dict(zip(_MEASURES, totals[at : at + 2], strict=True))
        for colour, at in zip(COLOURS, (0, 2, 4), strict=True)
    }
    packets = sum(colours[colour]["packets"] for colour in COLOURS)
    return {
        "counted_s": round(sum(row[-1] for row in counted) / 1000),
        **colours,
        "violate_ratio": colours["violate"]["packets"] / packets if packets else None,
    }
