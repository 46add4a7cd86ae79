"""Losses of routers, links and ports, as figures and as graphs. Without samples, a count is None, never 0."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection

from portal.inventory.models import BackboneLink, Port, Router
from portal.telemetry.bucket_queries import starts_of
from portal.telemetry.errors import RangeEmpty
from portal.telemetry.router_loss_rollups import (
    BUFFERS,
    COLUMNS,
    LOST,
    OF_INTERFACES,
    OF_ROUTERS,
    ROUTER,
    Rows,
    losses_of,
)
from portal.telemetry.throughput import step_for

# The time that alarms and metrics look back.
RECENTLY = timedelta(minutes=10)
LEAST_LOST = 10


def router_losses(
    *, router: Router, since: datetime, until: datetime, step_s: int | None = None, now: datetime
) -> dict[str, Any]:
    """Return the response of ``GET /routers/<id>/losses``: the counts of the router and of each interface.

    * ``totals``: the counts of the whole range by column.
    * ``points``: a list ``[start of the bucket (epoch s), count, ...]`` for each bucket, in the order of
      ``columns``. A count is None if there are no samples in the bucket.

    Raises RangeEmpty or StepRefused.
    """
    step_s, rows = _read(router.pk, since, until, step_s, now)
    links = {
        name: link.pk
        for link in BackboneLink.objects.filter(a_router=router)
        | BackboneLink.objects.filter(z_router=router)
        for name in ([link.a_interface] if link.a_router_id == router.pk else [])
        + ([link.z_interface] if link.z_router_id == router.pk else [])
    }
    names = sorted({interface for _, interface in rows} - {ROUTER})
    starts = starts_of(since, until, step_s)
    return {
        "step_s": step_s,
        "router": _series(rows, ROUTER, starts, (*OF_ROUTERS, *BUFFERS)),
        "interfaces": [
            {"name": name, "link": links.get(name), **_series(rows, name, starts, OF_INTERFACES)}
            for name in names
        ],
        "simulated": any(row[-1] for row in rows.values()),
    }


def link_losses(
    *, link: BackboneLink, since: datetime, until: datetime, step_s: int | None = None, now: datetime
) -> dict[str, Any]:
    """Return the response of ``GET /links/<id>/losses``: the counts of the interfaces at both sides.

    Raises RangeEmpty or StepRefused.
    """
    answer: dict[str, Any] = {"simulated": False}
    for side in ("a", "z"):
        router_id, name = getattr(link, f"{side}_router_id"), getattr(link, f"{side}_interface")
        answer["step_s"], rows = _read(router_id, since, until, step_s, now)
        rows = {key: row for key, row in rows.items() if key[1] == name}
        starts = starts_of(since, until, answer["step_s"])
        answer[f"{side}_side"] = {"name": name, **_series(rows, name, starts, OF_INTERFACES)}
        answer["simulated"] = answer["simulated"] or any(row[-1] for row in rows.values())
    return answer


def port_losses(
    *, port: Port, since: datetime, until: datetime, step_s: int, now: datetime
) -> dict[str, float | None]:
    """Return the frames that a port carried and lost in the range, by the columns of OF_INTERFACES.

    A value is None if there are no samples of the port in the range. Raises RangeEmpty or StepRefused.
    """
    step_s, rows = _read(port.router_id, since, until, step_s, now)
    totals: dict[str, float | None] = _series(
        rows, port.interface, starts_of(since, until, step_s), OF_INTERFACES
    )["totals"]
    return totals


def drops_at_port(port: Port, *, now: datetime, over: timedelta) -> int | None:
    """Return the number of frames that VPP received on a port and dropped during the last ``over``.

    Frames of all lines on the port count. Return None if there are no samples of the port in this period.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(drops) FROM telemetry_loss_sample"
            " WHERE router_id = %s AND to_at > %s AND interface = %s",
            [port.router_id, now - over, port.interface],
        )
        (drops,) = cursor.fetchone()
    return None if drops is None else int(drops)


def _read(
    router_id: int, since: datetime, until: datetime, step_s: int | None, now: datetime
) -> tuple[int, Rows]:
    if since >= until:
        raise RangeEmpty
    step_s = step_for(since, until, step_s, now)
    return step_s, losses_of(router_id, starts_of(since, until, step_s))


def _series(rows: Rows, interface: str, starts: range, columns: tuple[str, ...]) -> dict[str, Any]:
    places = [1 + COLUMNS.index(column) for column in columns]
    points: list[list[float | None]] = []
    for start in starts:
        row = rows.get((start, interface))
        points.append([start, *(None if row is None else row[place] for place in places)])
    totals = {
        column: _together(column, [point[1 + n] for point in points]) for n, column in enumerate(columns)
    }
    return {"columns": list(columns), "totals": totals, "points": points}


def _together(column: str, counts: Iterable[float | None]) -> float | None:
    """Merge the values of a column: the maximum of ``buffers``, the minimum of ``buffers_free``, else a sum.

    Return None if all values are None.
    """
    known = [count for count in counts if count is not None]
    if not known:
        return None
    return {"buffers": max, "buffers_free": min}.get(column, lambda each: round(sum(each)))(known)


@dataclass(frozen=True, slots=True)
class Loss:
    """The frames that a router's interface received, sent and lost during RECENTLY. Each reason of a loss has
    its own field.
    """

    router_id: int
    router: str
    interface: str
    rx_packets: int
    tx_packets: int
    drops: int
    rx_miss: int
    rx_errors: int
    rx_no_buffer: int
    tx_errors: int

    @property
    def lost(self) -> int:
        return sum(getattr(self, name) for name in LOST)

    @property
    def ratio(self) -> float:
        """The larger of two ratios: the lost part of the incoming frames, and the lost part of the outgoing
        frames.
        """
        rx_lost = self.lost - self.tx_errors
        return max(
            lost / (lost + carried) if lost else 0.0
            for lost, carried in ((rx_lost, self.rx_packets), (self.tx_errors, self.tx_packets))
        )

    @property
    def reasons(self) -> dict[str, int]:
        return {name: count for name in LOST if (count := getattr(self, name))}


@dataclass(frozen=True, slots=True)
class FewBuffers:
    """The buffers of a router's VPP: all buffers, and the smallest number of free buffers during RECENTLY."""

    router_id: int
    router: str
    buffers: int
    free: int

    @property
    def ratio(self) -> float:
        return self.free / self.buffers


# The losses of backbone interfaces. The LATERAL join uses the primary key of samples: router, then time.
_RECENT_LOSSES = """
SELECT router.id, router.name, side.interface, {sums}
FROM (SELECT DISTINCT a_router_id AS router_id, a_interface AS interface FROM inventory_backbonelink
      UNION SELECT z_router_id, z_interface FROM inventory_backbonelink) AS side
JOIN inventory_router AS router ON router.id = side.router_id
CROSS JOIN LATERAL (
    SELECT * FROM telemetry_loss_sample AS sample
    WHERE sample.router_id = side.router_id AND sample.interface = side.interface
      AND sample.to_at > %(since)s AND sample.to_at <= %(now)s
) AS counted
GROUP BY router.id, router.name, side.interface
ORDER BY router.name, side.interface
""".format(sums=", ".join(f"sum({column})::bigint" for column in OF_INTERFACES))  # noqa: S608 - constants
_RECENT_BUFFERS = """
SELECT DISTINCT ON (router.name, router.id) router.id, router.name, counted.buffers, counted.buffers_free
FROM inventory_router AS router
CROSS JOIN LATERAL (
    SELECT buffers, buffers_free FROM telemetry_loss_sample AS sample
    WHERE sample.router_id = router.id AND sample.interface = '' AND sample.buffers > 0
      AND sample.to_at > %(since)s AND sample.to_at <= %(now)s
) AS counted
ORDER BY router.name, router.id, counted.buffers_free
"""


def recent_losses(now: datetime) -> list[Loss]:
    """Return the frames that backbone interfaces carried and lost during RECENTLY.

    Interfaces without samples are absent.
    """
    with connection.cursor() as cursor:
        cursor.execute(_RECENT_LOSSES, {"since": now - RECENTLY, "now": now})
        return [Loss(*row) for row in cursor.fetchall()]


def recent_buffers(now: datetime) -> list[FewBuffers]:
    """Return, for each router, the smallest number of free buffers of its VPP during RECENTLY."""
    with connection.cursor() as cursor:
        cursor.execute(_RECENT_BUFFERS, {"since": now - RECENTLY, "now": now})
        return [FewBuffers(*row) for row in cursor.fetchall()]


def losing(losses: Iterable[Loss]) -> list[Loss]:
    """Return the interfaces that lose more than LONGLINE_LOSS_ALARM_RATIO of their frames, worst first.

    Interfaces with fewer than LEAST_LOST lost frames are ignored. Otherwise a single lost frame would put an
    interface with little traffic on the list.
    """
    limit = settings.LONGLINE_LOSS_ALARM_RATIO
    found = [each for each in losses if each.lost >= LEAST_LOST and each.ratio > limit]
    return sorted(found, key=lambda each: (-each.ratio, each.router, each.interface))


def short_of_buffers(routers: Iterable[FewBuffers]) -> list[FewBuffers]:
    """Return the routers with at most LONGLINE_BUFFER_ALARM_RATIO of their buffers free, worst first."""
    found = [each for each in routers if each.ratio <= settings.LONGLINE_BUFFER_ALARM_RATIO]
    return sorted(found, key=lambda each: (each.ratio, each.router))
