"""One version of the underlay: routers, links, and the links that traffic between two routers may use."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import NamedTuple, TypedDict

from portal.core.network.encapsulations import Family
from portal.underlay.shortest_paths import Arc, Graph


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


# Limits the memory of one routing: a cached result has a few dozen numbers.
_KEPT_ANSWERS = 16_384
# The routings before and after a planned change of the network, which are compared.
_KEPT_ROUTINGS = 2


class InvalidTopology(ValueError):
    """The facts contradict each other: a duplicate id, an unknown router, or a metric below 1."""


@dataclass(frozen=True, slots=True)
class UsedLinks:
    """The links between two routers, for both directions together; empty if there is no path.

    * ``primary``: links on an equal-cost shortest path, ordered by distance from the first router. Links that
      only the return direction uses come last.
    * ``backup``: links that frames use only after one failure.
    * ``fatal_links`` and ``fatal_routers``: links and routers whose failure leaves no path in some direction.
      They are computed only with ``any_single_failure``.
    """

    primary: tuple[Link, ...] = ()
    backup: tuple[Link, ...] = ()
    fatal_links: tuple[Link, ...] = ()
    fatal_routers: tuple[Router, ...] = ()


class _Failed(TypedDict):
    """The numbers of the failed link or router."""

    link: int | None
    router: int | None


class _Arcs(NamedTuple):
    """The facts about a link that routing needs: the numbers of its routers and the metrics of its sides."""

    a: int
    z: int
    a_metric: int
    z_metric: int
    families: frozenset[Family]


class Topology:
    """An immutable version of the underlay. A change of the underlay makes a new object.

    The links that frames use do not depend on MTUs. Versions that differ only in MTUs therefore share cached
    results (``_routing``). Several threads may use one object at the same time.
    """

    def __init__(self, *, routers: Sequence[Router], links: Sequence[Link]) -> None:
        """Check the facts. Raises InvalidTopology."""
        self._routers = tuple(routers)
        self._links = tuple(links)
        self._place = {router.id: place for place, router in enumerate(self._routers)}
        self._link_of = {link.id: link for link in self._links}
        self._validate()
        self._number_of = {link.id: number for number, link in enumerate(self._links)}
        self._routing = _routing(len(self._routers), tuple(self._arcs(link) for link in self._links))

    def router(self, id: Hashable) -> Router:
        """Return the router with this id. Raises KeyError for an unknown id."""
        return self._routers[self._place[id]]

    def link(self, id: Hashable) -> Link | None:
        """Return the link with this id; None for an unknown id."""
        return self._link_of.get(id)

    def ip_mtu(self, link: Link) -> int | None:
        """Return the link's IP MTU in bytes: the smallest known value, or None if it counts as unknown.

        The MTU is unknown in these cases:

        * Nobody declared or observed a value.
        * An agent that should observe one of the sides is silent, or does not report the interface. The real
          value may have changed since the last report.
        """
        for side in (link.a, link.z):
            if side.unwatched and self.router(side.router).agent_observed:
                return None
        return min(link.known_ip_mtus, default=None)

    def used_links(self, a: Hashable, z: Hashable, *, family: Family, any_single_failure: bool) -> UsedLinks:
        """Return the links that frames between two different routers may cross in either direction.

        ``family``: only links of this family. With ``any_single_failure``, the result includes the links that
        frames use after the failure of any one link of the shortest paths, or of any one router between ``a``
        and ``z``. Raises KeyError for an unknown router.
        """
        used = self._routing.used(family, self._place[a], self._place[z], any_single_failure)
        return UsedLinks(
            primary=tuple(self._links[number] for number in used.primary),
            backup=tuple(self._links[number] for number in used.backup),
            fatal_links=tuple(self._links[number] for number in used.fatal_links),
            fatal_routers=tuple(self._routers[number] for number in used.fatal_routers),
        )

    def crosses(
        self,
        a: Hashable,
        z: Hashable,
        *,
        family: Family,
        link: Hashable | None = None,
        router: Hashable | None = None,
    ) -> bool:
        """Return whether frames between two different routers may now cross this link or router.

        Both directions count. Raises KeyError for an unknown router.
        """
        graph = self._routing.graph(family)
        lost = self._failed(link, router)
        here, there = self._place[a], self._place[z]
        return graph.crosses(here, there, **lost) or graph.crosses(there, here, **lost)

    def links_without(
        self,
        a: Hashable,
        z: Hashable,
        *,
        family: Family,
        link: Hashable | None = None,
        router: Hashable | None = None,
    ) -> tuple[Link, ...]:
        """Return the links that frames may cross between two routers after this link or router has failed.

        Empty if no path is left in one direction, or if the failed router is ``a`` or ``z``. Raises KeyError
        for an unknown router.
        """
        if router is not None and router in (a, z):
            return ()
        graph = self._routing.graph(family)
        lost = self._failed(link, router)
        there = graph.links_without(self._place[a], self._place[z], **lost)
        back = graph.links_without(self._place[z], self._place[a], **lost)
        return tuple(self._links[number] for number in sorted(there | back)) if there and back else ()

    def _failed(self, link: Hashable | None, router: Hashable | None) -> _Failed:
        return _Failed(
            link=None if link is None else self._number_of.get(link),
            router=None if router is None else self._place[router],
        )

    def _arcs(self, link: Link) -> _Arcs:
        return _Arcs(
            self._place[link.a.router],
            self._place[link.z.router],
            link.a.metric,
            link.z.metric,
            link.families if link.in_service else frozenset(),
        )

    def _validate(self) -> None:
        if len(self._place) != len(self._routers):
            raise InvalidTopology("two routers have one id")
        if len(self._link_of) != len(self._links):
            raise InvalidTopology("two links have one id")
        for link in self._links:
            for side in (link.a, link.z):
                if side.router not in self._place:
                    raise InvalidTopology(f"link {link.name} ends at an unknown router")
                # A metric of 0 would put loops onto shortest paths.
                if side.metric < 1:
                    raise InvalidTopology(f"link {link.name} has a metric below 1")


class _Used(NamedTuple):
    """UsedLinks with numbers instead of links and routers."""

    primary: tuple[int, ...] = ()
    backup: tuple[int, ...] = ()
    fatal_links: tuple[int, ...] = ()
    fatal_routers: tuple[int, ...] = ()


class _Routing:
    """The routing of frames: routers and links as numbers, independent of MTUs."""

    def __init__(self, routers: int, links: tuple[_Arcs, ...]) -> None:
        # Families that use the same links share their cached results.
        self._carriers = {
            family: tuple(number for number, link in enumerate(links) if family in link.families)
            for family in Family
        }
        # The caches do not refer to this object. Python therefore frees an unused object immediately. In a
        # cycle it would wait for a full garbage collection, which takes up to 100 ms.
        self._graph = cache(partial(_graph, routers, links))
        self._used = lru_cache(_KEPT_ANSWERS)(partial(_used, self._graph))

    def graph(self, family: Family) -> Graph:
        return self._graph(self._carriers[family])

    def used(self, family: Family, a: int, z: int, any_single_failure: bool) -> _Used:
        """Return the links for a pair of routers; computed once per pair."""
        return self._used(self._carriers[family], a, z, any_single_failure)


def _graph(routers: int, links: Sequence[_Arcs], carriers: tuple[int, ...]) -> Graph:
    graph = Graph(routers)
    for number in carriers:
        link = links[number]
        graph.add(Arc(link.a, link.z, link.a_metric, number))
        graph.add(Arc(link.z, link.a, link.z_metric, number))
    return graph


def _used(
    graph_of: Callable[[tuple[int, ...]], Graph],
    carriers: tuple[int, ...],
    a: int,
    z: int,
    any_single_failure: bool,
) -> _Used:
    """Return the links for a pair of routers.

    Only failures of links and routers that every shortest path uses add detours. After any other failure a
    shortest path is left, and frames use no other link. A failure in the return direction does not change
    this direction.
    """
    graph = graph_of(carriers)
    primary: dict[int, None] = {}
    detours: set[int] = set()
    fatal_links: set[int] = set()
    fatal_routers: set[int] = set()
    for start, target in ((a, z), (z, a)):
        routes = graph.routes(start, target)
        if routes is None:
            return _Used()
        primary |= dict.fromkeys(routes.links)
        for link in routes.cut_links if any_single_failure else ():
            detour = graph.links_without(start, target, link=link)
            detours |= detour
            if not detour:
                fatal_links.add(link)
        for router in routes.cut_routers if any_single_failure else ():
            detour = graph.links_without(start, target, router=router)
            detours |= detour
            if not detour:
                fatal_routers.add(router)
    return _Used(
        primary=tuple(primary),
        backup=tuple(sorted(detours - primary.keys())),
        fatal_links=tuple(sorted(fatal_links)),
        fatal_routers=tuple(sorted(fatal_routers)),
    )


_routing = lru_cache(_KEPT_ROUTINGS)(_Routing)
