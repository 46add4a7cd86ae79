"""Drawings of routers and links as SVG: where everything goes. Pure, and the same for the same input.

Routers stand in columns by their distance (in links) from a first one; within a column they are ordered by
where their neighbours stand (the barycentre heuristic of Sugiyama, Tagawa and Toda, 1981), so that few links
cross. What is not joined to the first router is drawn below, in the same way.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

COLUMN, ROW, MARGIN = 240, 84, 2
BOX_HEIGHT, LETTER, PADDING = 30, 8, 24
LONGEST_NAME = 14
WIDEST = LONGEST_NAME * LETTER + PADDING
SMALL_LETTER, SMALL_LINE = 6.6, 16
_SWEEPS = 6
_BEND = 22


@dataclass(frozen=True, slots=True)
class Point:
    """A router: ``tone`` as of badges; ``note`` stands below its name."""

    id: Hashable
    name: str
    note: str = ""
    tone: str = "muted"


@dataclass(frozen=True, slots=True)
class Join:
    """A link between two spots; ``label`` is written on it and ``note`` below, ``title`` is all in words."""

    a: Hashable
    z: Hashable
    label: str
    title: str
    note: str = ""
    tone: str = "muted"
    backup: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """A spot in its place; ``x`` and ``y`` are the middle."""

    spot: Point
    x: float
    y: float
    width: float

    @property
    def left(self) -> float:
        return self.x - self.width / 2

    @property
    def top(self) -> float:
        return self.y - self.height / 2

    @property
    def height(self) -> int:
        return BOX_HEIGHT + (14 if self.spot.note else 0)

    @property
    def label(self) -> str:
        """The name, or as much of it as fits."""
        name = self.spot.name
        return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"

    @property
    def label_y(self) -> float:
        return self.y - (3 if self.spot.note else -4)

    @property
    def note_y(self) -> float:
        return self.y + 13


@dataclass(frozen=True, slots=True)
class Line:
    """A join as a path; ``x`` and ``y`` are the middle of its label."""

    join: Join
    path: str
    x: float
    y: float

    @property
    def width(self) -> float:
        return max(len(self.join.label), len(self.join.note)) * SMALL_LETTER + 2 * SMALL_LETTER

    @property
    def height(self) -> int:
        return SMALL_LINE * (2 if self.join.note else 1)

    @property
    def left(self) -> float:
        return self.x - self.width / 2

    @property
    def top(self) -> float:
        return self.y - self.height / 2

    @property
    def label_y(self) -> float:
        return self.top + SMALL_LINE - 4

    @property
    def note_y(self) -> float:
        return self.label_y + SMALL_LINE


@dataclass(frozen=True, slots=True)
class Drawing:
    """Sizes in CSS pixels."""

    width: float
    height: float
    boxes: list[Box]
    lines: list[Line]


def drawing_of(spots: Sequence[Point], joins: Sequence[Join], *, first: Hashable | None = None) -> Drawing:
    """``first``: the spot to begin with at the left; else one at the rim, so that the drawing is wide."""
    around: dict[Hashable, set[Hashable]] = {spot.id: set() for spot in spots}
    for join in joins:
        around[join.a].add(join.z)
        around[join.z].add(join.a)
    rank = {
        spot.id: place for place, spot in enumerate(sorted(spots, key=lambda each: (each.name, str(each.id))))
    }
    places: dict[Hashable, tuple[float, float]] = {}
    below = 0.0
    for start in _starts(around, rank, first):
        columns = _ordered(_columns(start, around, rank), around, rank)
        rows = max(len(column) for column in columns)
        for number, column in enumerate(columns):
            for row, spot in enumerate(column):
                places[spot] = (number, below + (rows - len(column)) / 2 + row)
        below += rows
    widest = max((_width(spot) for spot in spots), default=0)
    boxes = [_box(spot, widest, *places[spot.id]) for spot in spots]
    lines = _lines(joins, {box.spot.id: box for box in boxes})
    rims = [box.left + box.width for box in boxes] + [line.left + line.width for line in lines]
    return Drawing(
        width=max(rims, default=0) + MARGIN,
        height=below * ROW,
        boxes=boxes,
        lines=lines,
    )


def _starts(
    around: dict[Hashable, set[Hashable]], rank: dict[Hashable, int], first: Hashable | None
) -> Iterable[Hashable]:
    """A spot to begin with in each part of the network; the one with ``first`` comes first."""
    left = set(around)
    if first is not None:
        yield first
        left -= _distances(first, around).keys()
    while left:
        start = min(left, key=lambda spot: (-len(around[spot]), rank[spot]))
        distances = _distances(start, around)
        yield max(distances, key=lambda spot: (distances[spot], -rank[spot]))
        left -= distances.keys()


def _distances(start: Hashable, around: dict[Hashable, set[Hashable]]) -> dict[Hashable, int]:
    distances, pending = {start: 0}, [start]
    for here in pending:
        for there in around[here]:
            if there not in distances:
                distances[there] = distances[here] + 1
                pending.append(there)
    return distances


def _columns(
    start: Hashable, around: dict[Hashable, set[Hashable]], rank: dict[Hashable, int]
) -> list[list[Hashable]]:
    columns: dict[int, list[Hashable]] = defaultdict(list)
    for spot, distance in _distances(start, around).items():
        columns[distance].append(spot)
    return [sorted(columns[distance], key=lambda spot: rank[spot]) for distance in sorted(columns)]


def _ordered(
    columns: list[list[Hashable]], around: dict[Hashable, set[Hashable]], rank: dict[Hashable, int]
) -> list[list[Hashable]]:
    height: dict[Hashable, float] = {}
    for column in columns:
        height |= _heights(column)
    for sweep in range(_SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            members = set(column)
            keys = {spot: (_centre(spot, around[spot] - members, height), rank[spot]) for spot in column}
            column.sort(key=keys.__getitem__)
            height |= _heights(column)
    return columns


def _heights(column: list[Hashable]) -> dict[Hashable, float]:
    """From 0 to 1, whatever a column's length."""
    return {spot: (row + 0.5) / len(column) for row, spot in enumerate(column)}


def _centre(spot: Hashable, others: set[Hashable], height: dict[Hashable, float]) -> float:
    # Sums of floats depend on their order; what is drawn must not.
    return round(sum(height[there] for there in others) / len(others), 6) if others else height[spot]


def _width(spot: Point) -> float:
    letters = max(min(len(spot.name), LONGEST_NAME), len(spot.note) * 0.85)
    return min(letters * LETTER + PADDING, WIDEST)


def _box(spot: Point, widest: float, column: float, row: float) -> Box:
    return Box(spot, x=MARGIN + widest / 2 + column * COLUMN, y=(row + 0.5) * ROW, width=widest)


def _lines(joins: Sequence[Join], box_of: dict[Hashable, Box]) -> list[Line]:
    beside: dict[frozenset[Hashable], int] = defaultdict(int)
    count: dict[frozenset[Hashable], int] = defaultdict(int)
    for join in joins:
        count[frozenset((join.a, join.z))] += 1
    lines = []
    for join in joins:
        pair = frozenset((join.a, join.z))
        number, beside[pair] = beside[pair], beside[pair] + 1
        left, right = sorted((box_of[join.a], box_of[join.z]), key=lambda box: (box.x, box.y))
        lines.append(_line(join, left, right, number - (count[pair] - 1) / 2))
    return lines


def _line(join: Join, left: Box, right: Box, offset: float) -> Line:
    """A curve whose middle is ``offset`` bends away from the straight line between the two boxes."""
    if left.x == right.x:
        # In one column: around those that stand between.
        between = round(abs(right.y - left.y) / ROW) - 1
        around = WIDEST / 2 + _BEND + between * 8 if between else 0.0
        bend_x, bend_y = 2 * (around + _BEND * offset), 0.0
    else:
        bend_x, bend_y = 0.0, _BEND * 2 * offset
    middle_x, middle_y = (left.x + right.x) / 2, (left.y + right.y) / 2
    bend = f"Q{middle_x + bend_x:.0f} {middle_y + bend_y:.0f}"
    path = f"M{left.x:.0f} {left.y:.0f}{bend} {right.x:.0f} {right.y:.0f}"
    return Line(join, path, x=middle_x + bend_x / 2, y=middle_y + bend_y / 2)
