"""Frames that were dropped at the ends of a line: by VPP, and by policers."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.telemetry.bucket_queries import SIDES, rolled_up, starts_of
from portal.telemetry.errors import RangeEmpty
from portal.telemetry.rollup_tables import FIVE_MINUTES, ROLLUPS, finest_kept
from portal.telemetry.rollups import COLOURS
from portal.vll.models import Vll

_PER_END = ("in_drops", "violate_packets", "out_drops")
_COLUMNS = (*(f"{side}_{column}" for side in SIDES for column in _PER_END), "simulated")


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
    finest = finest_kept(since, now=now)
    table = finest if finest in ROLLUPS else FIVE_MINUTES
    rows = rolled_up(vll, starts_of(since, until, table.step_s), table, _COLUMNS)
    width = len(_PER_END)
    found = {}
    for at, side in enumerate(SIDES):
        counted = [row[at * width : (at + 1) * width] for row in rows.values()]
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


_WHATS = ("bytes", "packets")


def policed(*, vll: Vll, since: datetime, until: datetime, now: datetime) -> dict[str, Any]:
    """Return the response of ``GET /vlls/<id>/policing``, over the buckets that touch the range.

    * ``counted_s``: per end, the seconds in which a policer was counted.
    * ``conform`` and ``exceed`` (forwarded), ``violate`` (dropped): bytes and packets in that time; None if
      ``counted_s`` is 0.
    * ``violate_ratio``: the dropped part of the packets, from 0 to 1; None if there were no packets.

    Raises RangeEmpty.
    """
    if since >= until:
        raise RangeEmpty
    finest = finest_kept(since, now=now)
    table = finest if finest in ROLLUPS else FIVE_MINUTES
    columns = tuple(column for side in SIDES for column in _columns(side))
    rows = rolled_up(vll, starts_of(since, until, table.step_s), table, (*columns, "simulated"))
    width = len(columns) // len(SIDES)
    ends = {
        side: [counts for row in rows.values() if (counts := row[at * width : (at + 1) * width])[-1]]
        for at, side in enumerate(SIDES)
    }
    return {
        "step_s": table.step_s,
        **{f"{side}_end": _summary(counted) for side, counted in ends.items()},
        "simulated": any(row[-1] for row in rows.values() if row[width - 1] or row[-2]),
    }


def _columns(side: str) -> tuple[str, ...]:
    """Return the columns of an end, grouped by colour. The last column is the counted time (ms)."""
    return (*(f"{side}_{colour}_{what}" for colour in COLOURS for what in _WHATS), f"{side}_policed_ms")


def _summary(counted: list[tuple[Any, ...]]) -> dict[str, Any]:
    if not counted:
        return {"counted_s": 0, **dict.fromkeys(COLOURS), "violate_ratio": None}
    totals = [round(sum(row[at] for row in counted)) for at in range(len(COLOURS) * len(_WHATS))]
    colours = {
        colour: dict(zip(_WHATS, totals[at : at + 2], strict=True))
        for colour, at in zip(COLOURS, (0, 2, 4), strict=True)
    }
    packets = sum(colours[colour]["packets"] for colour in COLOURS)
    return {
        "counted_s": round(sum(row[-1] for row in counted) / 1000),
        **colours,
        "violate_ratio": colours["violate"]["packets"] / packets if packets else None,
    }
