"""The rule for GRE keys: a new GRE tunnel has a key if both routers' VPPs distinguish tunnels by keys.

A tunnel without a key keeps its own pair of addresses until it must be re-created. The portal does not
interrupt a line in service to add a key.
"""

from collections.abc import Mapping

from portal.core.network.encapsulations import Encapsulation, Family, Transport
from portal.inventory.models import Port
from portal.underlay.tunnel_endpoints import LineEnd
from portal.vll.line_spec import LineRevision


def gre_key_families(
    a: LineEnd, z: LineEnd, *, line: LineRevision | None, ports: Mapping[str, Port]
) -> frozenset[Family]:
    """Return the families over which a GRE tunnel between these routers would have a key.

    ``line``: the present content of the line; None for a new line.
    """
    if not (a.gre_keys and z.gre_keys):
        return frozenset()
    families = frozenset(Family)
    if line is None or line.encapsulation != Encapsulation.GRE or line.gre_key is not None:
        return families
    stays = same_tunnel(line, line.allocated_transport, ports)
    return families - {line.allocated_transport.family} if stays else families


def same_tunnel(line: LineRevision, transport: Transport, ports: Mapping[str, Port]) -> bool:
    """Return whether the line keeps its tunnel and its addresses with this transport and these ports.

    ``ports``: the wanted ports by side. Only their routers count.
    """
    same = (line.encapsulation, line.family) == (transport.encapsulation, transport.family)
    before = Port.objects.filter(pk__in={line.a_end.port, line.z_end.port}).values_list("pk", "router")
    routers = dict(before)
    return same and all(routers[end.port] == ports[side].router_id for side, end in line.ends.items())
