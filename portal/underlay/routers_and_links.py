"""The facts about the underlay: its routers and the links between them."""

from collections.abc import Hashable
from dataclasses import dataclass

from portal.core.network.encapsulations import Family


@dataclass(frozen=True, slots=True)
class Router:
    """A router of the underlay. ``agent_observed``: an agent should report the interfaces of this router."""

    id: Hashable
    name: str
    agent_observed: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class LinkSide:
    """One side of a link. MTUs are IP MTUs in bytes, None if unknown.

    ``metric``: the cost of leaving the router on this side. ``observed_stale``: the router's agent has been
    silent for too long or has never reported. ``observed_missing``: the agent does not report this interface.
    """

    router: Hashable
    interface: str
    metric: int
    declared_ip_mtu: int | None = None
    observed_ip_mtu: int | None = None
    observed_stale: bool = False
    observed_missing: bool = False

    @property
    def unwatched(self) -> bool:
        """Return whether an agent should observe this side but does not."""
        return self.observed_stale or self.observed_missing


@dataclass(frozen=True, slots=True)
class Link:
    """A backbone link. Parallel links between the same routers are separate links."""

    id: Hashable
    name: str
    a: LinkSide
    z: LinkSide
    families: frozenset[Family] = frozenset(Family)
    in_service: bool = True

    def __str__(self) -> str:
        return self.name

    @property
    def known_ip_mtus(self) -> tuple[int, ...]:
        """Return the known MTUs of both sides in bytes, declared and observed."""
        values = (
            self.a.declared_ip_mtu,
            self.a.observed_ip_mtu,
            self.z.declared_ip_mtu,
            self.z.observed_ip_mtu,
        )
        return tuple(value for value in values if value is not None)

    @property
    def mtu_mismatch(self) -> bool:
        """Return whether the known MTUs contradict each other. The NOC should check such a link."""
        return len(set(self.known_ip_mtus)) > 1
