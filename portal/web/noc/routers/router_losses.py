"""The losses of routers and links in the last day, as rows of a table."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from portal.inventory.models import BackboneLink, Router
from portal.telemetry.router_losses import LOST, link_losses, router_losses
from portal.web.page.sparkline import path_of

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
