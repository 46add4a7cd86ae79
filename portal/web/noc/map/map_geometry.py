"""Rectangles, curves of links, and places of labels on the map. Values are in pixels."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, hypot
from typing import NamedTuple

_CELL = 96.0


class Spot(NamedTuple):
    x: float
    y: float


class Rect(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around(cls, middle: Spot, width: float, height: float) -> "Rect":
        return cls(middle.x - width / 2, middle.y - height / 2, middle.x + width / 2, middle.y + height / 2)

    def grown(self, by: float) -> "Rect":
        return Rect(self.left - by, self.top - by, self.right + by, self.bottom + by)

    def touches(self, other: "Rect") -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


class Piece(NamedTuple):
    """A straight piece of a link."""

    start: Spot
    end: Spot

    @property
    def bounds(self) -> Rect:
        (a_x, a_y), (z_x, z_y) = self
        return Rect(min(a_x, z_x), min(a_y, z_y), max(a_x, z_x), max(a_y, z_y))

    def crosses(self, rect: Rect) -> bool:
        """Return whether any part of the piece is inside the rectangle (Liang and Barsky, 1984)."""
        (x, y), (end_x, end_y) = self
        enters, leaves = 0.0, 1.0
        for step, low, high, at in (
            (end_x - x, rect.left, rect.right, x),
            (end_y - y, rect.top, rect.bottom, y),
        ):
            if step == 0:
                if not low < at < high:
                    return False
                continue
            first, second = sorted(((low - at) / step, (high - at) / step))
            enters, leaves = max(enters, first), min(leaves, second)
        return enters < leaves


class Plane:
    """The rectangles and pieces that are already placed, indexed by position."""

    def __init__(self) -> None:
        self._rects: dict[tuple[int, int], list[Rect]] = defaultdict(list)
        self._pieces: dict[tuple[int, int], list[Piece]] = defaultdict(list)

    def add(self, rect: Rect) -> None:
        for cell in _cells(rect):
            self._rects[cell].append(rect)

    def add_piece(self, piece: Piece) -> None:
        for cell in _cells(piece.bounds):
            self._pieces[cell].append(piece)

    def is_free(self, rect: Rect) -> bool:
        """Return whether the rectangle touches no placed rectangle and no placed piece."""
        return not any(
            any(rect.touches(other) for other in self._rects.get(cell, ()))
            or any(piece.crosses(rect) for piece in self._pieces.get(cell, ()))
            for cell in _cells(rect)
        )

    def crossed_by(self, piece: Piece) -> set[Rect]:
        """Return the placed rectangles that the piece crosses."""
        return {
            rect for cell in _cells(piece.bounds) for rect in self._rects.get(cell, ()) if piece.crosses(rect)
        }


def _cells(rect: Rect) -> Iterator[tuple[int, int]]:
    for column in range(int(rect.left // _CELL), int(rect.right // _CELL) + 1):
        for row in range(int(rect.top // _CELL), int(rect.bottom // _CELL) + 1):
            yield column, row


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


# Positions of a label along its link (0 at A, 1 at Z), the best first.
_ALONG = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82)
# The minimum gap between two labels.
_APART = 3.0
_AWAY = (7.0, 13.0, 22.0)


def label_places(
    wanted: Iterable[tuple[Curve, float, float] | None], plane: Plane, *, inside: Rect
) -> Iterator[Rect | None]:
    """Yield a place for each label, in order; None if no place is free or no label is wanted.

    ``wanted``: the curve of the link, and the width and height of its label. The drawing leaves out a label
    without a place, because the table also contains the label's text. ``plane``: the objects that are already
    drawn. ``inside``: the area for labels.
    """
    labels = Plane()
    for each in wanted:
        place = None if each is None else _place(*each, (plane, labels), inside)
        if place is not None:
            labels.add(place.grown(_APART))
        yield place


def caption_place(block: Rect, width: float, height: float, plane: Plane) -> Rect:
    """Return a place for the name of a site, above or below its routers.

    If possible, no link crosses the place.
    """
    across = (block.right - block.left - width) / 2
    places = [
        Rect(left, top, left + width, top + height)
        for top in (block.top, block.bottom - height)
        for left in (
            block.left + across,
            block.left,
            block.right - width,
            block.left - width / 2,
            block.right - width / 2,
        )
    ]
    return next((place for place in places if plane.is_free(place)), places[0])


def _place(curve: Curve, width: float, height: float, planes: tuple[Plane, ...], inside: Rect) -> Rect | None:
    for place in _candidates(curve, width, height):
        if _is_within(place, inside) and all(plane.is_free(place) for plane in planes):
            return place
    return None


def _candidates(curve: Curve, width: float, height: float) -> Iterator[Rect]:
    for away in _AWAY:
        for along in _ALONG:
            middle, aside = curve.at(along), curve.aside(along)
            # The distance from the link to the centre of the label, so that the gap is ``away``.
            reach = abs(aside.x) * width / 2 + abs(aside.y) * height / 2 + away
            # Try the place above the link (or to its right) first.
            up = -1 if aside.y > 0 or (aside.y == 0 and aside.x < 0) else 1
            for side in (up, -up):
                spot = Spot(middle.x + side * reach * aside.x, middle.y + side * reach * aside.y)
                yield Rect.around(spot, width, height)


def _is_within(rect: Rect, inside: Rect) -> bool:
    return (
        rect.left >= inside.left
        and rect.top >= inside.top
        and rect.right <= inside.right
        and rect.bottom <= inside.bottom
    )
