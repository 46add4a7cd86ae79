"""The lines that the failure of one link or router would affect, and how."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from portal.core.db.statements import rows_of
from portal.core.network.encapsulations import Encapsulation, Family, Transport
from portal.core.network.required_mtu import MtuPolicy, overhead
from portal.underlay.current_topology import current_topology
from portal.underlay.path_mtu import Pair, PathLeft, crossing, path_left
from portal.underlay.topology import Topology
from portal.vll.models import TunnelPath
from portal.vll.states import IN_SERVICE

# The largest numbers of tunnel paths, of their routers, and of paths over the failed part, for one page. If a
# network exceeds one of these numbers, the page only reports lines that end on the failed router.
MAX_PATHS = 5_000
MAX_ENDS = 256
MAX_HIT = 500
# The largest number of checked lines whose path uses the failed part. If there are more, the page says so
# without a number.
MAX_LINES = 2_000

# The first lines that end on the router, each with the number of all such lines: there may be thousands.
# COLLATE "C" sorts like Python.
_ENDING_THERE = """
SELECT v.id, v.description, c.name, count(*) OVER ()
FROM (
    SELECT DISTINCT e.vll_id FROM inventory_port p JOIN vll_vllend e ON e.port_id = p.id
    WHERE p.router_id = %(router)s
) there
JOIN vll_vll v ON v.id = there.vll_id
JOIN accounts_customer c ON c.id = v.customer_id
WHERE v.lifecycle = ANY(%(lifecycles)s)
ORDER BY c.name COLLATE "C", v.description COLLATE "C", v.id
LIMIT %(limit)s
"""

# The lines between pairs of routers. The router with the lower id comes first, as in TunnelPath. The last
# condition is redundant, but lets PostgreSQL use the index of ports.
_OF_PAIRS = """
SELECT v.id, v.description, c.name, v.family, v.encapsulation, v.gre_key IS NOT NULL, v.frame,
       least(pa.router_id, pz.router_id), greatest(pa.router_id, pz.router_id)
FROM vll_vll v
JOIN accounts_customer c ON c.id = v.customer_id
JOIN vll_vllend a ON a.vll_id = v.id AND a.side = 'a' JOIN inventory_port pa ON pa.id = a.port_id
JOIN vll_vllend z ON z.vll_id = v.id AND z.side = 'z' JOIN inventory_port pz ON pz.id = z.port_id
WHERE v.lifecycle = ANY(%(lifecycles)s)
  AND (least(pa.router_id, pz.router_id), greatest(pa.router_id, pz.router_id), v.family) IN
    (SELECT * FROM unnest(%(a)s::bigint[], %(z)s::bigint[], %(family)s::int[]))
  AND pa.router_id = ANY(%(routers)s) AND pz.router_id = ANY(%(routers)s)
ORDER BY v.id
LIMIT %(limit)s
"""


class Fate(StrEnum):
    """The possible consequences of a failure for a line, the worst first."""

    DOWN = "down"
    TOO_WIDE = "too_wide"
    NOT_KNOWN = "not_known"
    DEGRADED = "degraded"


@dataclass(frozen=True, slots=True)
class HitLine:
    """An affected line. Sizes in bytes.

    ``needed``: the IP MTU that the line's largest frame needs; None for a line that ends on the failed
    router. ``left``: the IP MTU of the remaining path; None if it is unknown or no path remains.
    """

    id: UUID
    description: str
    customer: str
    fate: Fate
    needed: int | None
    left: int | None

    def __str__(self) -> str:
        return self.description or str(self.id)[:8]


class HitLines(NamedTuple):
    """The lines with one fate: the first of them by customer and name, and the number of all."""

    first: list[HitLine]
    total: int


@dataclass(frozen=True, slots=True)
class FailureImpact:
    """The lines that a failure affects, by their fate.

    ``has_more``: more lines use the failed part than were checked. ``followed``: False if the network has too
    many paths for one page. The impact then only contains lines that end on the failed router.
    """

    of: Mapping[Fate, HitLines]
    has_more: bool
    followed: bool


def failure_impact(
    *, now: datetime, shown: int, link: int | None = None, router: int | None = None
) -> FailureImpact:
    """Return the lines in service that a failure would affect now, in the declared and observed network.

    The failed part is ``link`` or ``router``. ``shown``: the number of lines to name for each fate. After the
    topology is read, this takes at most three small SQL statements in a network of any size.
    """
    topology = current_topology(now=now)
    hit = _hit(topology, link, router)
    ending = _ending_on(router, shown)
    lines = _of_pairs(hit or {}, without=router)
    of = {fate: [line for line in lines[:MAX_LINES] if line.fate == fate] for fate in Fate}
    totals = {fate: len(found) for fate, found in of.items()}
    of[Fate.DOWN] += ending.first
    totals[Fate.DOWN] += ending.total
    by_name = attrgetter("customer", "description", "id")
    return FailureImpact(
        {fate: HitLines(sorted(found, key=by_name)[:shown], totals[fate]) for fate, found in of.items()},
        has_more=len(lines) > MAX_LINES,
        followed=hit is not None,
    )


def fate_of(*, needed: int, left: PathLeft) -> Fate:
    """Return the fate of a line that uses the failed part.

    ``needed``: the IP MTU in bytes that the line's largest frame needs. ``left``: the remaining path.
    """
    if left.is_cut:
        return Fate.DOWN
    if left.ip_mtu is None:
        return Fate.NOT_KNOWN
    return Fate.TOO_WIDE if needed > left.ip_mtu else Fate.DEGRADED


def _hit(topology: Topology, link: int | None, router: int | None) -> dict[Pair, PathLeft] | None:
    """Return the remaining path of each affected pair of routers; None if MAX_PATHS, MAX_ENDS or MAX_HIT is
    exceeded.
    """
    used = TunnelPath.objects.filter(in_use=True).exclude(a_router=router).exclude(z_router=router)
    keys = list(used.order_by("pk").values_list("a_router", "z_router", "family")[: MAX_PATHS + 1])
    if len(keys) > MAX_PATHS or len({end for a, z, _ in keys for end in (a, z)}) > MAX_ENDS:
        return None
    pairs = (Pair(a, z, Family(family)) for a, z, family in keys)
    hit = crossing(topology, pairs, link=link, router=router)
    if len(hit) > MAX_HIT:
        return None
    return {pair: path_left(topology, pair, link=link, router=router) for pair in hit}


def _ending_on(router: int | None, shown: int) -> HitLines:
    if router is None:
        return HitLines([], 0)
    rows = _read(_ENDING_THERE, router=router, limit=shown)
    lines = [
        HitLine(id, description, customer, Fate.DOWN, needed=None, left=None)
        for id, description, customer, _ in rows
    ]
    return HitLines(lines, rows[0][-1] if rows else 0)


def _of_pairs(left: Mapping[Pair, PathLeft], *, without: int | None) -> list[HitLine]:
    if not left:
        return []
    routers: set[Hashable] = {end for pair in left for end in pair[:2]}
    rows = _read(
        _OF_PAIRS,
        a=[pair.a for pair in left],
        z=[pair.z for pair in left],
        family=[pair.family for pair in left],
        routers=list(routers - {without}),
        limit=MAX_LINES + 1,
    )
    return [_line(row, left) for row in rows]


def _read(statement: str, **params: Any) -> list[tuple[Any, ...]]:
    return rows_of(statement, {**params, "lifecycles": list(IN_SERVICE)})


def _line(row: tuple[Any, ...], left: Mapping[Pair, PathLeft]) -> HitLine:
    id, description, customer, family, encapsulation, gre_key, frame, a, z = row
    transport = Transport.of(Encapsulation(encapsulation), family)
    needed = frame + overhead(transport, MtuPolicy.EXACT, gre_key=gre_key)
    path = left[Pair(a, z, Family(family))]
    return HitLine(id, description, customer, fate_of(needed=needed, left=path), needed, path.ip_mtu)
