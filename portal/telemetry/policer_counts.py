"""The counts of the policers at both ends of a VLL (MEF 10.4: frames are green, yellow or red).

The counts are differences over time, and they are rolled up with the other counters. If an agent has no
reliable difference for a time, it sends no counts of this time.
"""

from datetime import datetime
from typing import Any

from portal.telemetry.bucket_queries import SIDES, rolled_up, starts_of
from portal.telemetry.errors import RangeEmpty
from portal.telemetry.rollup_tables import FIVE_MINUTES, ROLLUPS, finest_kept
from portal.telemetry.rollups import COLOURS
from portal.vll.models import Vll

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
