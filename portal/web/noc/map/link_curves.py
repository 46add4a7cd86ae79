"""The curves of links between routers: straight, or bent around other routers. Values are in pixels."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, hypot

from portal.web.noc.map.map_geometry import Piece, Plane, Rect, Spot

# The distance between two links that join the same routers.
_SPACING = 26
_PIECE = 80


@dataclass(frozen=True, slots=True)
class Curve:
    """A quadratic curve (SVG's ``Q``) from A to Z with the control point ``bend``."""

    a: Spot
    bend: Spot
    z: Spot

    def at(self, t: float) -> Spot:
        """Return the point of the curve at ``t``, which is 0 at A and 1 at Z."""
        u = 1 - t
        return Spot(
            u * u * self.a.x + 2 * u * t * self.bend.x + t * t * self.z.x,
            u * u * self.a.y + 2 * u * t * self.bend.y + t * t * self.z.y,
        )

    def aside(self, t: float) -> Spot:
        """Return the unit vector at a right angle to the curve at ``t``."""
        x = (1 - t) * (self.bend.x - self.a.x) + t * (self.z.x - self.bend.x)
        y = (1 - t) * (self.bend.y - self.a.y) + t * (self.z.y - self.bend.y)
        length = hypot(x, y) or 1.0
        return Spot(-y / length, x / length)

    @property
    def pieces(self) -> list[Piece]:
        count = max(ceil(hypot(self.z.x - self.a.x, self.z.y - self.a.y) / _PIECE), 1)
        if self.bend != _middle(self.a, self.z):
            count = max(count, 6)
        return [Piece(*both) for both in pairwise(self.at(part / count) for part in range(count + 1))]

    @property
    def halves(self) -> tuple[str, str]:
        """Two SVG paths, from A and from Z to the middle of the curve (de Casteljau)."""
        middle = self.at(0.5)
        return (
            _path(self.a, _middle(self.a, self.bend), middle),
            _path(self.z, _middle(self.bend, self.z), middle),
        )

    @property
    def path(self) -> str:
        return _path(self.a, self.bend, self.z)


def curves(
    pairs: Sequence[tuple[Hashable, Hashable]], box_of: Mapping[Hashable, Rect], *, aside: Sequence[float]
) -> Iterator[Curve]:
    """Yield a curve for each link, in order. Links between the same two routers are side by side.

    ``pairs``: the two routers of each link. ``box_of``: the rectangle of each router. ``aside``: possible
    distances of a link's middle from the straight line, the best first.
    """
    plane = Plane()
    for box in box_of.values():
        plane.add(box)
    count: dict[frozenset[Hashable], int] = {}
    for pair in pairs:
        count[frozenset(pair)] = count.get(frozenset(pair), 0) + 1
    drawn: dict[frozenset[Hashable], int] = {}
    for a, z in pairs:
        both = frozenset((a, z))
        number = drawn[both] = drawn.get(both, -1) + 1
        offset = _SPACING * (number - (count[both] - 1) / 2)
        yield _curve(box_of[a], box_of[z], [offset + each for each in aside], plane)


def _curve(a: Rect, z: Rect, aside: Sequence[float], plane: Plane) -> Curve:
    """Return the first curve that crosses no other router. If there is none, return the curve that crosses
    the fewest.
    """
    tried = []
    for each in aside:
        curve = _bent(a, z, each)
        met = len({rect for piece in curve.pieces for rect in plane.crossed_by(piece)} - {a, z})
        if not met:
            return curve
        tried.append((met, curve))
    return min(tried, key=lambda each: each[0])[1]


def _bent(a: Rect, z: Rect, aside: float) -> Curve:
    """Return a curve whose middle is ``aside`` pixels from the straight line.

    The side of the line does not depend on which router is A.
    """
    start, end = _middle(Spot(*a[:2]), Spot(*a[2:])), _middle(Spot(*z[:2]), Spot(*z[2:]))
    first, last = sorted((start, end))
    length = hypot(last.x - first.x, last.y - first.y) or 1.0
    across = Spot((first.y - last.y) / length, (last.x - first.x) / length)
    middle = _middle(start, end)
    return Curve(start, Spot(middle.x + 2 * aside * across.x, middle.y + 2 * aside * across.y), end)


def _middle(one: Spot, other: Spot) -> Spot:
    return Spot((one.x + other.x) / 2, (one.y + other.y) / 2)


def _path(start: Spot, bend: Spot, end: Spot) -> str:
    return f"M{start.x:.0f} {start.y:.0f}Q{bend.x:.0f} {bend.y:.0f} {end.x:.0f} {end.y:.0f}"
