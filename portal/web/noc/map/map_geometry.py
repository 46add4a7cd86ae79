"""Rectangles and straight pieces of links on a plane, with collision tests. All values are in pixels."""

from collections import defaultdict
from collections.abc import Iterator
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
