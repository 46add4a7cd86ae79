"""The effect of the failure of one link or router on paths between routers. Pure functions."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from portal.core.network.encapsulations import Family
from portal.underlay.routers_and_links import Link
from portal.underlay.topology import Topology


class Pair(NamedTuple):
    """Two different routers with tunnels between them over one family."""

    a: Hashable
    z: Hashable
    family: Family


@dataclass(frozen=True, slots=True)
class PathLeft:
    """The links that frames may use after the failure; empty if no path is left. Sizes are IP MTUs in bytes.

    ``ip_mtu``: the largest packet that every one of these links carries; None if any MTU is unknown.
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
    """Return the pairs whose frames may now cross this link or router in either direction.

    Raises KeyError for an unknown router.
    """
    return [
        pair
        for pair in pairs
        if topology.crosses(pair.a, pair.z, family=pair.family, link=link, router=router)
    ]


def path_left(
    topology: Topology, pair: Pair, *, link: Hashable | None = None, router: Hashable | None = None
) -> PathLeft:
    """Return the path of a pair after this link or router has failed.

    Raises KeyError for an unknown router.
    """
    links = topology.links_without(pair.a, pair.z, family=pair.family, link=link, router=router)
    mtus = [topology.ip_mtu(each) for each in links]
    known = [mtu for mtu in mtus if mtu is not None]
    return PathLeft(links, min(known) if known and len(known) == len(mtus) else None)
