"""Layouts of routers: in columns by distance, and at the coordinates of sites. Pure functions."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, cos, pi, radians, sin, sqrt

from portal.web.noc.map.map_geometry import Plane, Rect, Spot

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
    """Return the column and the row of each router, both from 0. A column has one distance from ``first``.

    Within a column, the barycentre heuristic of Sugiyama, Tagawa and Toda (1981) orders the routers, so that
    few links cross. A drawing that is wider than the page is folded: after the last column that fits, the
    next columns follow below, in the opposite direction. Routers without a path to the first router are in
    columns below the other columns. Routers without any link are at the bottom, side by side.

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


# The height of a map in pixels. A map with many sites is up to twice as high.
_TALL = 560.0
# The minimum gap between two sites in pixels, and the share of the map that sites may fill before the map
# grows.
_GAP, _FULL = 34.0, 0.4
# The maximum horizontal stretch of a network that is higher than wide, so that its map fills the page.
_STRETCH = 1.6
CAPTION = 18.0


@dataclass(frozen=True, slots=True)
class SitePlace:
    """The place of a site on the map.

    ``routers``: the centre of each router. ``block``: the rectangle around all routers of the site, with
    space for a name above and below.
    """

    name: str
    routers: dict[Hashable, Spot]
    block: Rect


@dataclass(frozen=True, slots=True)
class Site:
    """A site. ``routers``: the width and height of each router, ordered by name."""

    name: str
    routers: Mapping[Hashable, tuple[float, float]]
    caption_width: float


@dataclass(frozen=True, slots=True)
class LocatedSite(Site):
    """A site with coordinates. ``coordinates``: latitude and longitude in degrees."""

    coordinates: tuple[float, float]


def geographic_layout(sites: Sequence[LocatedSite], *, width: float) -> list[SitePlace]:
    """Return the places of sites with coordinates on an equirectangular projection, with north at the top.

    If sites would overlap, some of them are moved away from their coordinates.
    """
    sites = sorted(sites, key=lambda site: (-site.coordinates[0], site.coordinates[1], site.name))
    blocks = [_Block(site) for site in sites]
    area = sum((block.width + _GAP) * (block.height + _GAP) for block in blocks) / _FULL
    tall = min(max(_TALL, area / width), 2 * _TALL)
    wide = max(width, area / tall)
    plane, placed = Plane(), []
    for block, spot in zip(blocks, _projected(sites, blocks, wide, tall), strict=True):
        found = next(place for place in _around(spot) if plane.is_free(block.at(place).grown(_GAP / 2)))
        plane.add(block.at(found).grown(_GAP / 2))
        placed.append(block.placed(found))
    return placed


def rows_layout(sites: Sequence[Site], *, left: float, top: float, width: float) -> list[SitePlace]:
    """Return the places of sites in rows, ordered by name. ``left`` and ``top``: the corner of the rows."""
    placed: list[SitePlace] = []
    x, y, tall = left, top, 0.0
    for site in sorted(sites, key=lambda each: each.name):
        block = _Block(site)
        if x > left and x + block.width > left + width:
            x, y, tall = left, y + tall + _GAP, 0.0
        placed.append(block.placed(Spot(x + block.width / 2, y + block.height / 2)))
        x, tall = x + block.width + _GAP, max(tall, block.height)
    return placed


class _Block:
    """The block of a site: its routers in rows."""

    def __init__(self, site: Site) -> None:
        self.site = site
        sizes = list(site.routers.values())
        self._columns = max(ceil(sqrt(len(sizes) / 2)), 1)
        self._cell = (max(w for w, _h in sizes), max(h for _w, h in sizes))
        # Leave space for a link between two routers of the site.
        self._gaps = (56.0, self._cell[1] * 0.9)
        rows = ceil(len(sizes) / self._columns)
        across = self._columns * (self._cell[0] + self._gaps[0]) - self._gaps[0]
        self.width = max(across, site.caption_width)
        self.height = rows * (self._cell[1] + self._gaps[1]) - self._gaps[1] + 2 * CAPTION

    def at(self, middle: Spot) -> Rect:
        return Rect.around(middle, self.width, self.height)

    def placed(self, middle: Spot) -> SitePlace:
        box = self.at(middle)
        across, down = self._cell[0] + self._gaps[0], self._cell[1] + self._gaps[1]
        routers = {}
        for number, router in enumerate(self.site.routers):
            row, column = divmod(number, self._columns)
            in_row = min(self._columns, len(self.site.routers) - row * self._columns)
            routers[router] = Spot(
                middle.x + (column - (in_row - 1) / 2) * across,
                box.top + CAPTION + self._cell[1] / 2 + row * down,
            )
        return SitePlace(self.site.name, routers, box)


def _projected(
    sites: Sequence[LocatedSite], blocks: Sequence[_Block], wide: float, tall: float
) -> list[Spot]:
    """Return the centre of each site's block, so that all blocks are within ``wide`` and ``tall``."""
    latitudes = [site.coordinates[0] for site in sites]
    longitudes = _unrolled([site.coordinates[1] for site in sites])
    north, south = max(latitudes), min(latitudes)
    shrunk = cos(radians((north + south) / 2))
    xs = [longitude * shrunk for longitude in longitudes]
    west, east = min(xs), max(xs)
    room_x = wide - max(block.width for block in blocks)
    room_y = max(tall - max(block.height for block in blocks), 0.0)
    scale_y = room_y / (north - south) if north > south else None
    scale_x = room_x / (east - west) if east > west else None
    if scale_x is not None and scale_y is not None:
        scale_y = min(scale_x, scale_y)
        scale_x = min(scale_x, scale_y * _STRETCH)
    middle_x = (west + east) / 2
    return [
        Spot(wide / 2 + (x - middle_x) * (scale_x or 0), tall / 2 + (north - latitude) * (scale_y or 0))
        for x, latitude in zip(xs, latitudes, strict=True)
    ]


def _unrolled(longitudes: Sequence[float]) -> list[float]:
    """Return the longitudes, shifted so that the map's edge is at the widest gap between sites.

    Sites on both sides of the 180th meridian are therefore next to each other.
    """
    around = sorted(set(longitudes))
    gaps = [(after - before, after) for before, after in pairwise([*around, around[0] + 360])]
    _widest, cut = max(gaps, key=lambda gap: gap[0])
    return [longitude + 360 if longitude < cut else longitude for longitude in longitudes]


def _around(spot: Spot) -> Iterator[Spot]:
    """Yield the spot, and then spots around it at growing distances, without end."""
    yield spot
    ring = 0
    while True:
        ring += 1
        for turn in range(6 * ring):
            angle = 2 * pi * turn / (6 * ring)
            yield Spot(spot.x + 24 * ring * cos(angle), spot.y + 16 * ring * sin(angle))
