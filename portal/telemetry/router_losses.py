"""Losses of routers, links and ports: storage of the agents' counts, their roll-up into buckets, and queries.

The buckets have 5 minutes, an hour and a day. This works as for lines (portal.telemetry.rollups): every
stored sample marks its 5-minute bucket as stale, and a marked bucket is counted again as a whole. Queries do
not wait for the roll-up: they count marked buckets from the samples. Without samples, a count is None, never
0.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q

from portal.core.db.sessions import AdvisoryLock
from portal.core.db.statements import rows_of
from portal.inventory.kinds import is_interface_name
from portal.inventory.models import BackboneLink, Port, Router
from portal.telemetry.buckets import starts_of, time_of
from portal.telemetry.partitioned_tables import LOSS_ROLLUPS, Table
from portal.telemetry.reported_counters import (
    LONGEST_SAMPLE,
    CounterReport,
    CounterSample,
    InterfaceCount,
    RouterCount,
)
from portal.telemetry.rollups import RollUp
from portal.telemetry.throughput import step_for

# The counts of an interface, in frames: carried frames first, then losses.
OF_INTERFACES = InterfaceCount.__struct_fields__[1:]
# Losses of the interface itself. ``drops`` are not among them, because VPP also drops frames on purpose.
LOST = ("rx_miss", "rx_errors", "rx_no_buffer", "tx_errors")
# The counts of a router, in packets; and VPP's buffers at one moment: all buffers, and the free buffers.
OF_ROUTERS, BUFFERS = RouterCount.__struct_fields__[:4], RouterCount.__struct_fields__[4:]
COUNTS = (*OF_INTERFACES, *OF_ROUTERS)
COLUMNS = (*COUNTS, *BUFFERS)
# The value of the column ``interface`` in rows with a router's own counts.
ROUTER = ""

_INSERT = """
WITH stored AS (
    INSERT INTO telemetry_loss_sample (router_id, boot_id, simulated, seq, from_at, to_at, interface,
                                       {columns})
    SELECT %s, %s::uuid, %s, seq, 'epoch'::timestamptz + from_ms * interval '1 millisecond',
           'epoch'::timestamptz + to_ms * interval '1 millisecond', interface, {columns}
    FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::text[], {arrays})
         AS sample (seq, from_ms, to_ms, interface, {columns})
    ON CONFLICT DO NOTHING
    RETURNING from_at, to_at
)
INSERT INTO telemetry_stale_loss_bucket (router_id, step_s, start_at)
SELECT DISTINCT %s::bigint, 300, start_at
FROM stored, generate_series(date_bin('5 minutes', from_at, 'epoch'), to_at - interval '1 microsecond',
                           '5 minutes') AS start_at
ON CONFLICT DO NOTHING
""".format(columns=", ".join(COLUMNS), arrays=", ".join(["%s::bigint[]"] * len(COLUMNS)))  # noqa: S608 - constants


def losses_insert(
    cursor: Any, *, router: Router, report: CounterReport, good: Iterable[CounterSample]
) -> None:
    """Store the counts of the router and its interfaces from these samples, and mark their buckets as stale.

    Each count is stored once. The caller must protect the marks first
    (portal.telemetry.rollups.lock_buckets).
    """
    rows: list[tuple[CounterSample, str, Any]] = []
    for sample in good:
        if sample.router is not None:
            rows.append((sample, ROUTER, sample.router))
        named = {each.name: each for each in sample.interfaces if is_interface_name(each.name)}
        rows += [(sample, name, each) for name, each in named.items()]
    if not rows:
        return
    cursor.execute(
        _INSERT,
        [
            router.pk,
            report.boot_id,
            report.simulated,
            *([getattr(sample, name) for sample, _, _ in rows] for name in ("seq", "from_ms", "to_ms")),
            [name for _, name, _ in rows],
            *([getattr(counted, name, None) for _, _, counted in rows] for name in COLUMNS),
            router.pk,
        ],
    )


# The counts of a router, by start of the bucket (epoch s) and interface. A row has the counted milliseconds,
# COLUMNS, and whether any count is simulated.
Rows = dict[tuple[int, str], tuple[Any, ...]]

# Buckets (%(owners)s, %(starts)s) of any length, from samples. A sample's counts are spread evenly in time.
_FROM_SAMPLES = """
SELECT b.router_id, b.start_at, interface, sum(overlap_ms)::int AS covered_ms, {sums},
       max(buffers) AS buffers, min(buffers_free) AS buffers_free, bool_or(simulated) AS simulated
FROM unnest(%(owners)s::bigint[], %(starts)s::timestamptz[]) AS b (router_id, start_at)
CROSS JOIN LATERAL (
    SELECT *, round(1000 * extract(epoch FROM least(to_at, b.start_at + %(length)s)
                                              - greatest(from_at, b.start_at)))::float8 AS overlap_ms,
           round(1000 * extract(epoch FROM to_at - from_at))::float8 AS length_ms
    FROM telemetry_loss_sample
    WHERE router_id = b.router_id AND from_at < b.start_at + %(length)s AND to_at > b.start_at
      AND to_at <= b.start_at + %(length)s + %(reach)s
) AS s
GROUP BY b.router_id, b.start_at, interface
""".replace("{sums}", ", ".join(f"sum({column} * (overlap_ms / length_ms)) AS {column}" for column in COUNTS))
_FROM_FINER = """
SELECT b.router_id, b.start_at, interface, sum(covered_ms)::int AS covered_ms, {sums},
       max(buffers) AS buffers, min(buffers_free) AS buffers_free, bool_or(simulated) AS simulated
FROM unnest(%(owners)s::bigint[], %(starts)s::timestamptz[]) AS b (router_id, start_at)
JOIN {finer} AS f ON f.router_id = b.router_id AND f.start_at >= b.start_at
                     AND f.start_at < b.start_at + %(length)s
GROUP BY b.router_id, b.start_at, interface
""".replace("{sums}", ", ".join(f"sum({column}) AS {column}" for column in COUNTS))
_LOSSES = RollUp(
    tables=LOSS_ROLLUPS,
    marks="telemetry_stale_loss_bucket",
    marks_key=("router_id", "step_s", "start_at"),
    owner_type="bigint",
    key=("router_id", "start_at", "interface"),
    columns=("covered_ms", *COLUMNS, "simulated"),
    from_samples=_FROM_SAMPLES,
    from_finer=_FROM_FINER,
    lock=AdvisoryLock.LOSS_ROLL_UPS,
)
losses_roll_up = _LOSSES.run


def losses_of(router_id: int, starts: range) -> Rows:
    """Return the non-empty buckets of a router and its interfaces that begin at ``starts`` (epoch s)."""
    table = next((each for each in reversed(LOSS_ROLLUPS) if starts.step % each.step_s == 0), None)
    rows: Rows = {}
    with connection.cursor() as cursor:
        # Read the marks first: a bucket that is rolled up later can still be read from the samples.
        fresh = set(starts) if table is None else _marked(cursor, router_id, starts, table)
        if table is not None and len(fresh) < len(starts):
            rows = _stored(cursor, router_id, starts, table, fresh)
    return rows | _counted_now(router_id, sorted(fresh), starts.step) if fresh else rows


def _counted_now(router_id: int, starts: Sequence[int], step_s: int) -> Rows:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL jit = off")
        parameters: dict[str, Any] = {
            "owners": [router_id] * len(starts),
            "starts": [time_of(start) for start in starts],
            "length": timedelta(seconds=step_s),
            "reach": LONGEST_SAMPLE,
        }
        cursor.execute(_FROM_SAMPLES, parameters)
        return {(int(row[1].timestamp()), row[2]): row[3:] for row in cursor.fetchall()}


def _marked(cursor: Any, router_id: int, starts: range, table: Table) -> set[int]:
    cursor.execute(
        "SELECT DISTINCT extract(epoch FROM start_at)::bigint FROM telemetry_stale_loss_bucket"
        " WHERE router_id = %s AND step_s <= %s AND start_at >= %s AND start_at < %s",
        [router_id, table.step_s, time_of(starts.start), time_of(starts.stop)],
    )
    return {start - start % starts.step for (start,) in cursor.fetchall()}.intersection(starts)


def _stored(cursor: Any, router_id: int, starts: range, table: Table, without: set[int]) -> Rows:
    sums = ", ".join(f"sum({column})" for column in COUNTS)
    cursor.execute(
        f"SELECT extract(epoch FROM date_bin(%s, start_at, 'epoch'))::bigint AS longer_at, interface,"  # noqa: S608 - constants
        f" sum(covered_ms)::int, {sums}, max(buffers), min(buffers_free), bool_or(simulated)"
        f" FROM {table.name} WHERE router_id = %s AND start_at >= %s AND start_at < %s"
        " GROUP BY longer_at, interface",
        [timedelta(seconds=starts.step), router_id, time_of(starts.start), time_of(starts.stop)],
    )
    return {row[:2]: row[2:] for row in cursor.fetchall() if row[0] not in without}


# The time that alarms and metrics look back.
RECENTLY = timedelta(minutes=10)
LEAST_LOST = 10


def router_losses(
    *, router: Router, since: datetime, until: datetime, step_s: int | None = None, now: datetime
) -> dict[str, Any]:
    """Return the response of ``GET /routers/<id>/losses``: the counts of the router and of each interface.

    A count is None if there are no samples in the bucket. Raises RangeEmpty or StepRefused.
    """
    step_s, rows = _read(router.pk, since, until, step_s, now)
    links = {
        getattr(link, f"{side}_interface"): link.pk
        for link in BackboneLink.objects.filter(Q(a_router=router) | Q(z_router=router))
        for side in "az"
        if getattr(link, f"{side}_router_id") == router.pk
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
    """Return the response of ``GET /links/<id>/losses``. Raises RangeEmpty or StepRefused."""
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
    """Return the frames of all lines that a port received and dropped during ``over``; None if unknown."""
    [(drops,)] = rows_of(
        "SELECT sum(drops) FROM telemetry_loss_sample WHERE router_id = %s AND to_at > %s AND interface = %s",
        [port.router_id, now - over, port.interface],
    )
    return None if drops is None else int(drops)


def _read(
    router_id: int, since: datetime, until: datetime, step_s: int | None, now: datetime
) -> tuple[int, Rows]:
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
    """The frames that an interface received, sent and lost during RECENTLY, the losses by reason."""

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
        """The larger of the lost parts of the incoming and of the outgoing frames."""
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
    """Return the losses of backbone interfaces with samples during RECENTLY."""
    return [Loss(*row) for row in rows_of(_RECENT_LOSSES, {"since": now - RECENTLY, "now": now})]


def recent_buffers(now: datetime) -> list[FewBuffers]:
    """Return, for each router, the smallest number of free buffers of its VPP during RECENTLY."""
    return [FewBuffers(*row) for row in rows_of(_RECENT_BUFFERS, {"since": now - RECENTLY, "now": now})]


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
