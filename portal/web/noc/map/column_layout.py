"""A layout that places routers in columns by their distance (in links) from a first router. Pure functions.

Within a column, the barycentre heuristic of Sugiyama, Tagawa and Toda (1981) orders the routers, so that few
links cross. A drawing that is wider than the page is folded: after the last column that fits, the next
columns follow below, in the opposite direction. Routers without a path to the first router are in columns
below the other columns. Routers without any link are at the bottom, side by side.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence

_SWEEPS = 6
Around = Mapping[Hashable, set[Hashable]]
Column = list[Hashable]


def column_layout(
    names: Mapping[Hashable, str],
    pairs: Iterable[tuple[Hashable, Hashable]],
    *,
    fitting: int,
    first: Hashable | None = None,
) -> dict[Hashable, tuple[int, float]]:
    """Return the column and the row of each router, both from 0.

    ``names``: the names of the routers. ``pairs``: the two ends of each link. ``fitting``: the maximum number
    of columns side by side. ``first``: the leftmost router. If it is None, the leftmost router is one at the
    edge of the network, which makes the drawing wide.
    """
    around: dict[Hashable, set[Hashable]] = {router: set() for router in names}
    for a, z in pairs:
        around[a].add(z)
        around[z].add(a)
    by_name = sorted(names, key=lambda each: (names[each], str(each)))
    rank = {router: place for place, router in enumerate(by_name)}
    places: dict[Hashable, tuple[int, float]] = {}
    below = 0
    for start in _starts(around, rank, first):
        columns = _ordered(_columns(start, around, rank), around, rank)
        below = _fold(columns, fitting, below, places)
    alone = [router for router in by_name if not around[router] and router != first]
    _fold([[router] for router in alone], fitting, below, places, turning=False)
    return places


def _fold(
    columns: Sequence[Column],
    fitting: int,
    below: int,
    places: dict[Hashable, tuple[int, float]],
    *,
    turning: bool = True,
) -> int:
    """Store the places of these columns, from the row ``below`` on. Return the next free row.

    ``turning``: whether every second band of columns runs from right to left.
    """
    for band, at in enumerate(range(0, len(columns), fitting)):
        some = columns[at : at + fitting]
        rows = max(len(column) for column in some)
        for number, column in enumerate(some):
            across = fitting - 1 - number if turning and band % 2 else number
            for row, router in enumerate(column):
                places[router] = (across, below + (rows - len(column)) / 2 + row)
        below += rows
    return below


def _starts(around: Around, rank: Mapping[Hashable, int], first: Hashable | None) -> Iterable[Hashable]:
    """Yield the first router of each connected part of the network. The part with ``first`` comes first."""
    left = {router for router in around if around[router]}
    if first is not None:
        yield first
        left -= _distances(first, around).keys()
    while left:
        start = min(left, key=lambda router: (-len(around[router]), rank[router]))
        distances = _distances(start, around)
        yield max(distances, key=lambda router: (distances[router], -rank[router]))
        left -= distances.keys()


def _distances(start: Hashable, around: Around) -> dict[Hashable, int]:
    distances, pending = {start: 0}, [start]
    for here in pending:
        for there in around[here]:
            if there not in distances:
                distances[there] = distances[here] + 1
                pending.append(there)
    return distances


def _columns(start: Hashable, around: Around, rank: Mapping[Hashable, int]) -> list[Column]:
    columns: dict[int, Column] = defaultdict(list)
    for router, distance in _distances(start, around).items():
        columns[distance].append(router)
    return [sorted(columns[distance], key=lambda router: rank[router]) for distance in sorted(columns)]


def _ordered(columns: list[Column], around: Around, rank: Mapping[Hashable, int]) -> list[Column]:
    height: dict[Hashable, float] = {}
    for column in columns:
        height |= _heights(column)
    for sweep in range(_SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            members = set(column)
            keys = {
                router: (_centre(router, around[router] - members, height), rank[router]) for router in column
            }
            column.sort(key=keys.__getitem__)
            height |= _heights(column)
    return columns


def _heights(column: Column) -> dict[Hashable, float]:
    """Return the relative vertical position of each router in its column, from 0 (top) to 1 (bottom)."""
    return {router: (row + 0.5) / len(column) for row, router in enumerate(column)}


def _centre(router: Hashable, others: set[Hashable], height: dict[Hashable, float]) -> float:
    # The sum is rounded: a sum of floats depends on the order of the summands, but the drawing must not.
    return round(sum(height[there] for there in others) / len(others), 6) if others else height[router]
