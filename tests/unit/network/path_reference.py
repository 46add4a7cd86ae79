"""A brute-force reference for the rule "which links count": it walks every simple path."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from portal.core.network.encapsulations import Family
from portal.underlay.topology import Link

Arc = tuple[Hashable, Hashable, int, Link]


@dataclass
class Expected:
    primary: set[Hashable] = field(default_factory=set)
    after_failures: set[Hashable] = field(default_factory=set)
    fatal_links: set[Hashable] = field(default_factory=set)
    fatal_routers: set[Hashable] = field(default_factory=set)


def expected(links: Sequence[Link], a: Hashable, z: Hashable, family: Family) -> Expected:
    """Return the ids of the links and routers in both directions.

    Empty unless both directions have a path.
    """
    usable = [link for link in links if link.in_service and family in link.families]
    there, back = shortest(usable, a, z), shortest(usable, z, a)
    if not there or not back:
        return Expected()
    result = Expected()
    routers = set()
    for path in there + back:
        for tail, head, _, link in path:
            result.primary.add(link.id)
            routers |= {tail, head}
    for failed in result.primary:
        left = [link for link in usable if link.id != failed]
        if not _collect(result, left, a, z):
            result.fatal_links.add(failed)
    for router in routers - {a, z}:
        left = [link for link in usable if router not in (link.a.router, link.z.router)]
        if not _collect(result, left, a, z):
            result.fatal_routers.add(router)
    return result


def _collect(result: Expected, links: Sequence[Link], a: Hashable, z: Hashable) -> bool:
    directions = shortest(links, a, z), shortest(links, z, a)
    for paths in directions:
        result.after_failures |= {link.id for path in paths for *_, link in path}
    return all(directions)


def shortest(links: Sequence[Link], start: Hashable, target: Hashable) -> list[list[Arc]]:
    paths = list(_simple_paths(links, [], start, target, {start}))
    lowest = min((_cost(path) for path in paths), default=0)
    return [path for path in paths if _cost(path) == lowest]


def _cost(path: list[Arc]) -> int:
    return sum(metric for _, _, metric, _ in path)


def _simple_paths(
    links: Sequence[Link], sofar: list[Arc], here: Hashable, target: Hashable, visited: set[Hashable]
) -> Iterator[list[Arc]]:
    if here == target:
        yield sofar
        return
    for link in links:
        for leaving, arriving in ((link.a, link.z), (link.z, link.a)):
            if leaving.router == here and arriving.router not in visited:
                arc = (here, arriving.router, leaving.metric, link)
                yield from _simple_paths(
                    links, [*sofar, arc], arriving.router, target, visited | {arriving.router}
                )
