"""Shortest paths over the underlay, and detours after the failure of a link or a router.

Routers and links are small integers here. The graph is directed, because each side of a link has its own
metric. It may have parallel links. Equal-cost shortest paths always count together, as ECMP uses them
together.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from heapq import heappop, heappush
from typing import NamedTuple

UNREACHABLE = 1 << 62

# Limits the memory of one graph: with 1,000 routers a list of distances takes up to 40 kB.
_KEPT_DISTANCES = 512


class Arc(NamedTuple):
    """One direction of a link."""

    tail: int
    head: int
    metric: int
    link: int


@dataclass(frozen=True, slots=True)
class Routes:
    """All equal-cost shortest paths from one router to another.

    ``links`` are ordered by distance from the start. Every path uses all ``cut_links`` and ``cut_routers``;
    the two ends are not among ``cut_routers``.
    """

    links: tuple[int, ...]
    cut_links: tuple[int, ...]
    cut_routers: tuple[int, ...]


class Graph:
    """A directed graph with parallel arcs."""

    def __init__(self, routers: int) -> None:
        self._out: list[list[Arc]] = [[] for _ in range(routers)]
        self._into: list[list[Arc]] = [[] for _ in range(routers)]
        self._arcs_of: dict[int, list[Arc]] = defaultdict(list)
        self._distances_to = lru_cache(_KEPT_DISTANCES)(partial(_distances_to, self._into))

    def add(self, arc: Arc) -> None:
        """Add an arc. Its metric is at least 1. Add all arcs before the first query."""
        self._out[arc.tail].append(arc)
        self._into[arc.head].append(arc)
        self._arcs_of[arc.link].append(arc)

    def routes(self, start: int, target: int) -> Routes | None:
        """Return the shortest paths; None if there is no path."""
        distances = self._distances_to(target)
        total = distances[start]
        if total == UNREACHABLE:
            return None
        # Every arc of a shortest path leads to a smaller distance. Routers sorted by their remaining distance
        # to the target are therefore in path order.
        arcs_from: dict[int, list[Arc]] = {}
        pending = [start]
        while pending:
            router = pending.pop()
            if router in arcs_from:
                continue
            downhill = [
                arc for arc in self._out[router] if arc.metric + distances[arc.head] == distances[router]
            ]
            arcs_from[router] = downhill
            pending.extend(arc.head for arc in downhill)
        ordered = sorted(arcs_from, key=lambda router: (-distances[router], router))
        cut_routers = _bottlenecks(ordered, arcs_from, distances)
        # A link is on every path if it is the only link onward from a router that is on every path.
        cut_links = [arcs_from[r][0].link for r in cut_routers if len(arcs_from[r]) == 1]
        return Routes(
            links=tuple(arc.link for router in ordered for arc in arcs_from[router]),
            cut_links=tuple(cut_links),
            cut_routers=tuple(router for router in cut_routers if router not in (start, target)),
        )

    def crosses(self, start: int, target: int, *, link: int | None = None, router: int | None = None) -> bool:
        """Return whether this link or router is on a shortest path. The two ends are on every path."""
        distances = self._distances_to(target)
        total = distances[start]
        if total == UNREACHABLE:
            return False
        if router is not None and self._distances_to(router)[start] + distances[router] == total:
            return True
        return link is not None and any(
            self._distances_to(arc.tail)[start] + arc.metric + distances[arc.head] == total
            for arc in self._arcs_of[link]
        )

    def links_without(
        self,
        start: int,
        target: int,
        *,
        link: int | None = None,
        router: int | None = None,
    ) -> set[int]:
        """Return the links of all shortest paths after this link or router has failed.

        Empty if no path is left. The search is A* from ``start``: distances in the whole graph never
        overestimate distances in a graph with fewer links, and they keep the triangle inequality. Each router
        is therefore settled once, and the search visits only the neighbourhood of the detour.
        """
        distances = self._distances_to(target)
        costs = {start: 0}
        queue = [(distances[start], start)]
        settled: set[int] = set()
        bound = UNREACHABLE
        while queue:
            estimate, here = heappop(queue)
            if estimate > bound:
                break
            if here in settled:
                continue
            settled.add(here)
            if here == target:
                # Continue with routers of equal estimate: they belong to other paths of the same cost.
                bound = estimate
                continue
            cost = costs[here]
            for _, head, metric, through in self._out[here]:
                if through == link or head == router or head in settled:
                    continue
                reached = cost + metric
                if distances[head] < UNREACHABLE and reached < costs.get(head, UNREACHABLE):
                    costs[head] = reached
                    heappush(queue, (reached + distances[head], head))
        if target not in settled:
            return set()
        return self._links_back(target, costs, settled, without=link)

    def _links_back(
        self, target: int, costs: dict[int, int], settled: set[int], *, without: int | None
    ) -> set[int]:
        links: set[int] = set()
        seen = {target}
        pending = [target]
        while pending:
            here = pending.pop()
            for tail, _, metric, link in self._into[here]:
                if tail in settled and link != without and costs[tail] + metric == costs[here]:
                    links.add(link)
                    if tail not in seen:
                        seen.add(tail)
                        pending.append(tail)
        return links


def _distances_to(into: Sequence[Sequence[Arc]], target: int) -> list[int]:
    """Return the cost from each router to ``target``; UNREACHABLE without a path (Dijkstra)."""
    distances = [UNREACHABLE] * len(into)
    distances[target] = 0
    queue = [(0, target)]
    while queue:
        distance, router = heappop(queue)
        if distance > distances[router]:
            continue
        for tail, _, metric, _ in into[router]:
            if distance + metric < distances[tail]:
                distances[tail] = distance + metric
                heappush(queue, (distance + metric, tail))
    return distances


def _bottlenecks(
    ordered: Sequence[int], arcs_from: dict[int, list[Arc]], distances: Sequence[int]
) -> list[int]:
    """Return the routers that every shortest path passes.

    No arc jumps over such a router, and no other router has the same distance. ``ordered``: the routers of
    the shortest paths by falling distance to the target.
    """
    bottlenecks = []
    reached = distances[ordered[0]]  # the smallest distance that an arc from an earlier router leads to
    for place, router in enumerate(ordered):
        distance = distances[router]
        alone = place + 1 == len(ordered) or distances[ordered[place + 1]] < distance
        shared = place > 0 and distances[ordered[place - 1]] == distance
        if alone and not shared and reached >= distance:
            bottlenecks.append(router)
        for arc in arcs_from[router]:
            reached = min(reached, distances[arc.head])
    return bottlenecks
