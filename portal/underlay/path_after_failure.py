"""What the failure of one link or router does to paths between routers. Pure."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from portal.core.encapsulations import Family
from portal.underlay.routers_and_links import Link
from portal.underlay.topology import Topology


class Pair(NamedTuple):
    """Two different routers with tunnels between them over one family."""

    a: Hashable
    z: Hashable
    family: Family


@dataclass(frozen=True, slots=True)
class PathLeft:
    """The links that count after the failure; none where no path is left. Sizes are IP MTUs in bytes.

    ``ip_mtu``: the largest packet that gets through on each of them; None where the MTU of one is not known.
    """

    links: tuple[Link, ...]
    ip_mtu: int | None

    @property
    def is_cut(self) -> bool:
        return not self.links


def crossing(
    topology: Topology,
    pairs: Iterable[Pair],
    *,
    link: Hashable | None = None,
    router: Hashable | None = None,
) -> list[Pair]:
    """Those whose frames may cross this link or router now, either way. KeyError for an unknown router."""
    return [
        pair
        for pair in pairs
        if topology.crosses(pair.a, pair.z, family=pair.family, link=link, router=router)
    ]


def path_left(
    topology: Topology, pair: Pair, *, link: Hashable | None = None, router: Hashable | None = None
) -> PathLeft:
    """The path of a pair once this link or router is gone. KeyError for an unknown router."""
    links = topology.links_without(pair.a, pair.z, family=pair.family, link=link, router=router)
    mtus = [topology.ip_mtu(each) for each in links]
    known = [mtu for mtu in mtus if mtu is not None]
    return PathLeft(links, min(known) if known and len(known) == len(mtus) else None)
