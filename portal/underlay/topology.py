"""The underlay as plain facts: routers, the links between them, and what is known of each link's MTU."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from portal.core.transport import Family


@dataclass(frozen=True, slots=True)
class Router:
    """``agent_observed``: an agent should be reporting this router's interfaces."""

    id: Hashable
    name: str
    agent_observed: bool = False


@dataclass(frozen=True, slots=True)
class LinkSide:
    """One side of a link. MTUs are IP MTUs in bytes, None where unknown.

    ``metric`` is what leaving the router by this side costs. ``observed_stale``: the router's agent
    has been silent for too long, or has never spoken.
    """

    router: Hashable
    interface: str
    metric: int
    declared_ip_mtu: int | None = None
    observed_ip_mtu: int | None = None
    observed_stale: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A backbone link. Two links between the same routers are two links."""

    id: Hashable
    name: str
    a: LinkSide
    z: LinkSide
    families: frozenset[Family] = frozenset(Family)
    in_service: bool = True

    @property
    def known_ip_mtus(self) -> tuple[int, ...]:
        """What was declared and observed on both sides, in bytes, without the unknown."""
        values = (
            self.a.declared_ip_mtu,
            self.a.observed_ip_mtu,
            self.z.declared_ip_mtu,
            self.z.observed_ip_mtu,
        )
        return tuple(value for value in values if value is not None)

    @property
    def mtu_mismatch(self) -> bool:
        """Whether the known values contradict each other: something for the NOC to look at."""
        return len(set(self.known_ip_mtus)) > 1


class InvalidTopology(ValueError):
    """The facts contradict each other: a duplicate id, an unknown router, or a metric below 1."""


class Topology:
    """One version of the underlay. Never changes: a new version is a new object, with new answers."""

    routers: Mapping[Hashable, Router]
    links: Sequence[Link]

    def __init__(self, *, routers: Sequence[Router], links: Sequence[Link]) -> None:
        self.routers = MappingProxyType({router.id: router for router in routers})
        self.links = tuple(links)
        if len(self.routers) != len(routers):
            raise InvalidTopology("two routers have one id")
        if len({link.id for link in links}) != len(links):
            raise InvalidTopology("two links have one id")
        for link in links:
            if link.a.router not in self.routers or link.z.router not in self.routers:
                raise InvalidTopology(f"link {link.name} ends at an unknown router")
            # A metric of 0 would put a loop onto a shortest path.
            if link.a.metric < 1 or link.z.metric < 1:
                raise InvalidTopology(f"link {link.name} has a metric below 1")

    def ip_mtu(self, link: Link) -> int | None:
        """The link's IP MTU in bytes: the smallest known value, or None when it counts as unknown.

        It is unknown when nobody named a value, and also when an agent that should be watching one of
        its sides is silent: what was declared may have been changed since.
        """
        for side in (link.a, link.z):
            if side.observed_stale and self.routers[side.router].agent_observed:
                return None
        return min(link.known_ip_mtus, default=None)
