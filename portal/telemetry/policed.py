"""What the policers at both ends of a VLL counted (MEF 10.4: frames are green, yellow or red).

Like all counts: differences over time, rolled up, and nothing where nothing can be trusted.
"""

from datetime import datetime
from typing import Any

from portal.telemetry.buckets import SIDES, Rows, rolled_up, starts_of
from portal.telemetry.queries import RangeEmpty
from portal.telemetry.rollups import COLOURS
from portal.telemetry.tables import FIVE_MINUTES, ROLLUPS, Table, finest_kept
from portal.vll.models import Vll

_WHATS = ("bytes", "packets")


def policed(*, vll: Vll, since: datetime, until: datetime, now: datetime) -> dict[str, Any]:
    """The answer of ``GET /vlls/<id>/policing``, over the buckets that touch the range.

    Per end ``counted_s``, the seconds for which a policer was counted at all, and of that time the bytes
    and packets that conformed, exceeded (both forwarded) and violated (dropped); None where nothing was
    counted, never zero. ``violate_ratio``: the dropped part of the packets, from 0 to 1, None without any.
    Raises RangeEmpty.
    """
    if since >= until:
        raise RangeEmpty
    finest = finest_kept(since, now=now)
    table = finest if finest in ROLLUPS else FIVE_MINUTES
    ends = {f"{side}_end": _end(vll, side, starts_of(since, until, table.step_s), table) for side in SIDES}
    return {
        "step_s": table.step_s,
        **{name: end for name, (end, _) in ends.items()},
        "simulated": any(simulated for _, simulated in ends.values()),
    }


def _end(vll: Vll, side: str, starts: range, table: Table) -> tuple[dict[str, Any], bool]:
    counts = tuple(f"{side}_{colour}_{what}" for colour in COLOURS for what in _WHATS)
    rows = rolled_up(vll, starts, table, (*counts, f"{side}_policed_ms", "simulated"))
    return _summary(rows), any(row[-1] for row in rows.values() if row[-2])


def _summary(rows: Rows) -> dict[str, Any]:
    counted = [row for row in rows.values() if row[-2]]
    if not counted:
        return {"counted_s": 0, **dict.fromkeys(COLOURS), "violate_ratio": None}
    totals = [round(sum(row[at] for row in counted)) for at in range(len(COLOURS) * len(_WHATS))]
    colours = {
        colour: dict(zip(_WHATS, totals[at : at + 2], strict=True))
        for colour, at in zip(COLOURS, (0, 2, 4), strict=True)
    }
    packets = sum(colours[colour]["packets"] for colour in COLOURS)
    return {
        "counted_s": round(sum(row[-2] for row in counted) / 1000),
        **colours,
        "violate_ratio": colours["violate"]["packets"] / packets if packets else None,
    }
