"""Sparklines in tables: the traffic of lines in the last hour, and the losses of interfaces in a day."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from portal.inventory.models import BackboneLink, Router
from portal.telemetry.router_losses import LOST, link_losses, router_losses
from portal.telemetry.throughput import Recent

WIDTH, HEIGHT = 72, 24
# A little more than half of the stroke's width, so that the edges of the image do not cut it off.
_MARGIN = 2
# The current rate is searched in this number of newest buckets. If the routers report, at least one of these
# buckets has a value.
_NOW = 2


@dataclass(frozen=True, slots=True)
class Sparkline:
    """The sparkline of a line.

    ``a_to_z`` and ``z_to_a``: SVG path data, with gaps where nothing was counted. ``a_to_z_now`` and
    ``z_to_a_now``: the current rates in bit/s; None if unknown.
    """

    a_to_z: str
    z_to_a: str
    a_to_z_now: float | None
    z_to_a_now: float | None
    simulated: bool


def sparkline_of(recent: Recent) -> Sparkline | None:
    """Return the sparkline; None if there are no counts in the last hour.

    Both directions have the same scale, from zero to the highest rate.
    """
    if recent.is_empty:
        return None
    top = max(rate for rate in (*recent.a, *recent.z, 1.0) if rate is not None)
    return Sparkline(
        a_to_z=path_of(recent.a, top),
        z_to_a=path_of(recent.z, top),
        a_to_z_now=_newest(recent.a),
        z_to_a_now=_newest(recent.z),
        simulated=recent.simulated,
    )


def _newest(rates: Sequence[float | None]) -> float | None:
    return next((rate for rate in reversed(rates[-_NOW:]) if rate is not None), None)


def path_of(rates: Sequence[float | None], top: float) -> str:
    """Return SVG path data of the rates, from left to right, on a scale from zero to ``top``.

    It has gaps where a rate is None.
    """
    pace = (WIDTH - 2 * _MARGIN) / max(1, len(rates) - 1)
    parts: list[str] = []
    after_gap = True
    for place, rate in enumerate(rates):
        if rate is None:
            after_gap = True
            continue
        x, y = _MARGIN + place * pace, HEIGHT - _MARGIN - (HEIGHT - 2 * _MARGIN) * rate / top
        # A single point between two gaps becomes a line of length 0, which round line caps show as a dot.
        parts.append(f"M{x:.1f} {y:.1f}h0" if after_gap else f"L{x:.1f} {y:.1f}")
        after_gap = False
    return "".join(parts)


SPAN = timedelta(days=1)
STEP_S = 1800


def router_loss_rows(*, router: Router, now: datetime) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return a row for each interface of the router, and the totals of the router itself.

    Interfaces of links are first.
    """
    answer = router_losses(router=router, since=now - SPAN, until=now, step_s=STEP_S, now=now)
    rows = [_row(each, each["name"], each["link"]) for each in answer["interfaces"]]
    return sorted(rows, key=lambda row: row["link"] is None), answer["router"]["totals"]


def link_loss_rows(link: BackboneLink, now: datetime) -> list[dict[str, Any]]:
    """Return a row for each side of a link. The A side is first."""
    answer = link_losses(link=link, since=now - SPAN, until=now, step_s=STEP_S, now=now)
    return [
        _row(answer[f"{side}_side"], f"{router}:{answer[f'{side}_side']['name']}", None)
        for side, router in (("a", link.a_router), ("z", link.z_router))
    ]


def _row(series: dict[str, Any], name: str, link: int | None) -> dict[str, Any]:
    """Return the losses of an interface in the last day.

    ``totals``: the counts by column. ``lost``: the frames that the interface itself lost. ``ratio``: their
    share of all frames that it received or should have sent. ``path``: SVG path data of a sparkline; ""
    without losses.
    """
    totals, columns = series["totals"], series["columns"]
    places = [1 + columns.index(column) for column in LOST]
    lost_by_bucket = [_sum([point[place] for place in places]) for point in series["points"]]
    lost = _sum([totals[column] for column in LOST])
    carried = _sum([totals["rx_packets"], totals["tx_packets"]])
    ratio = None if lost is None or not (lost + (carried or 0)) else lost / (lost + (carried or 0))
    top = max((each for each in lost_by_bucket if each), default=0)
    path = path_of(lost_by_bucket, top) if top else ""
    return {"name": name, "link": link, "totals": totals, "lost": lost, "ratio": ratio, "path": path}


def _sum(counts: Sequence[float | None]) -> float | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
