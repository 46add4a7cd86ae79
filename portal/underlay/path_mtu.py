"""The MTU of the underlay between two routers, and the effect of a failure on paths."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from portal.core.network.encapsulations import Family
from portal.core.network.required_mtu import MtuPolicy
from portal.underlay.errors import NoPath, PathMtuUnknown, PathTooNarrow, TransportRefused
from portal.underlay.topology import Link, Router, Topology, UsedLinks


@dataclass(frozen=True, slots=True)
class PathPolicy:
    """The rules for the MTU check of a path.

    ``any_single_failure``: whether the path must carry the frame after any one failure too. None means True
    with the policy ``planning``, and False with ``exact``.
    """

    mtu: MtuPolicy = MtuPolicy.PLANNING
    any_single_failure: bool | None = None

    @property
    def survives_one_failure(self) -> bool:
        if self.any_single_failure is None:
            return self.mtu is MtuPolicy.PLANNING
        return self.any_single_failure


@dataclass(frozen=True, slots=True)
class PathReport:
    """The links that frames may use between two routers, and the narrowest of them.

    MTUs are IP MTUs in bytes. ``narrowest_mtu`` and ``limiting_link`` consider links of known MTU only.
    ``unknown`` lists the other links.
    """

    a: Router
    z: Router
    family: Family
    used: UsedLinks
    unknown: tuple[Link, ...]
    limiting_link: Link | None
    narrowest_mtu: int | None

    @property
    def links(self) -> tuple[Link, ...]:
        """Return all links that frames may use."""
        return self.used.primary + self.used.backup

    @property
    def path_mtu(self) -> int | None:
        """Return the largest IP packet that every link carries.

        Return None without a path or if the MTU of a link is unknown.
        """
        return None if self.unknown else self.narrowest_mtu

    def refusal(self, required: int) -> TransportRefused | None:
        """Return the reason why an IP packet of ``required`` bytes may be lost; None if the packet fits.

        An unknown MTU is reported before a narrow path, because a smaller packet does not help while the MTU
        is unknown.
        """
        if not self.links:
            return NoPath(a=self.a, z=self.z, family=self.family)
        if self.unknown:
            return PathMtuUnknown(links=self.unknown)
        if self.limiting_link and self.narrowest_mtu is not None and self.narrowest_mtu < required:
            return PathTooNarrow(link=self.limiting_link, required=required, available=self.narrowest_mtu)
        return None


def path_check(
    topology: Topology, a: Hashable, z: Hashable, *, family: Family, any_single_failure: bool
) -> PathReport:
    """Return the links between two different routers, for both directions, and their MTUs.

    Raises KeyError for an unknown router.
    """
    used = topology.used_links(a, z, family=family, any_single_failure=any_single_failure)
    unknown: list[Link] = []
    limiting_link: Link | None = None
    narrowest_mtu: int | None = None
    for link in used.primary + used.backup:
        ip_mtu = topology.ip_mtu(link)
        if ip_mtu is None:
            unknown.append(link)
        elif narrowest_mtu is None or ip_mtu < narrowest_mtu:
            limiting_link, narrowest_mtu = link, ip_mtu
    return PathReport(
        a=topology.router(a),
        z=topology.router(z),
        family=family,
        used=used,
        unknown=tuple(unknown),
        limiting_link=limiting_link,
        narrowest_mtu=narrowest_mtu,
    )


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
