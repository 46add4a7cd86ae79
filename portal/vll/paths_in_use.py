"""The paths between routers that the tunnels of lines in service take."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Count, Exists, OuterRef

from portal.core.network.encapsulations import Encapsulation, Transport
from portal.core.network.required_mtu import MtuPolicy, overhead
from portal.vll.models import TunnelPath, Vll, VllEnd
from portal.vll.states import IN_SERVICE

# The ids of the lower and the higher router, and the family. Routers identify a path by two loopback
# addresses, so a path has one family.
PathKey = tuple[int, int, int]

# Without conditions in {chosen}, the statement reads all lines in service in one pass.
_PATHS = """
SELECT least(pa.router_id, pz.router_id), greatest(pa.router_id, pz.router_id), v.family, {columns}
FROM vll_vll v
JOIN vll_vllend a ON a.vll_id = v.id AND a.side = 'a' JOIN inventory_port pa ON pa.id = a.port_id
JOIN vll_vllend z ON z.vll_id = v.id AND z.side = 'z' JOIN inventory_port pz ON pz.id = z.port_id
WHERE v.lifecycle = ANY(%s) AND v.family IS NOT NULL AND pa.router_id <> pz.router_id {chosen}
GROUP BY 1, 2, 3 {groups}
"""
# Both routers have the present revision of the tunnel.
_BUILT = """
AND a.status = 'verified' AND a.status_revision = v.revision
AND z.status = 'verified' AND z.status_revision = v.revision
"""


@dataclass(frozen=True, slots=True)
class PathLine:
    """A line's end whose tunnel uses a path, with the revision that the end's router must have."""

    vll: UUID
    side: str
    revision: int


def paths_in_use() -> dict[PathKey, int]:
    """Return the paths that lines in service use, by lower router, higher router and family.

    The value is the largest IP packet that encapsulated frames of these lines need, in bytes.
    """
    needed: dict[PathKey, int] = {}
    kinds = _read(
        columns="v.encapsulation, v.gre_key IS NOT NULL, max(v.frame)",
        groups=", v.encapsulation, 5",
        chosen="",
    )
    for a, z, family, encapsulation, gre_key, frame in kinds:
        transport = Transport.of(Encapsulation(encapsulation), family)
        packet = frame + overhead(transport, MtuPolicy.EXACT, gre_key=gre_key)
        needed[a, z, family] = max(packet, needed.get((a, z, family), 0))
    return needed


def lines_beyond(path: TunnelPath, ip_mtu: int) -> list[Vll]:
    """Return the lines in service on a path that produce IP packets of more than ``ip_mtu`` bytes."""
    routers = (path.a_router_id, path.z_router_id)
    ends = VllEnd.objects.filter(vll=OuterRef("pk"), port__router__in=routers)
    both = ends.values("vll").annotate(routers=Count("port__router", distinct=True)).filter(routers=2)
    lines = Vll.objects.filter(Exists(both), lifecycle__in=IN_SERVICE, family=path.family)
    return [line for line in lines.order_by("created_at", "pk") if line.tunnel_packet > ip_mtu]


def path_lines_on(router_id: int, paths: Collection[TunnelPath]) -> dict[PathKey, PathLine]:
    """Return, for each path, one end on this router. Both routers have confirmed the tunnel of that end's
    line.

    Paths without such an end are left out.
    """
    routers = {path.a_router_id for path in paths} | {path.z_router_id for path in paths}
    chosen = (
        _BUILT
        + "AND %s IN (pa.router_id, pz.router_id) AND pa.router_id = ANY(%s) AND pz.router_id = ANY(%s)"
    )
    rows = _read(router_id, list(routers), list(routers), columns="min(v.id::text)", groups="", chosen=chosen)
    found = {(a, z, family): UUID(vll) for a, z, family, vll in rows}
    ends = VllEnd.objects.filter(vll__in=found.values(), port__router=router_id)
    here = {
        vll: PathLine(vll, side, revision)
        for vll, side, revision in ends.values_list("vll", "side", "vll__revision")
    }
    return {key: here[vll] for key, vll in found.items() if vll in here}


def path_of(vll: Vll) -> TunnelPath | None:
    """Return the stored path of a line's tunnel; None if it is not stored, or the line has no tunnel.

    Prefetch ``ends`` and their ports.
    """
    if vll.family is None:
        return None
    a, z = sorted(end.port.router_id for end in vll.ends.all())
    return TunnelPath.objects.filter(a_router=a, z_router=z, family=vll.family).first()


def _read(*more: Any, columns: str, groups: str, chosen: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        text = _PATHS.format(columns=columns, groups=groups, chosen=chosen)
        cursor.execute(text, [list(IN_SERVICE), *more])
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
