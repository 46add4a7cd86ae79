"""The layout of drawings of routers and links, for SVG. The same input always gives the same output.

If any site has coordinates, routers are drawn at their sites (``geographic_layout``), and sites without
coordinates are in a box below. Otherwise all routers are in columns (``column_layout``). Links are drawn
around routers (``curves``), and labels are placed next to links (``label_places``).
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from django.utils.safestring import SafeString, mark_safe

from portal.web.noc.map.map_geometry import Curve, Plane, Rect, Spot, caption_place, curves, label_places
from portal.web.noc.map.router_layouts import (
    CAPTION,
    LocatedSite,
    Site,
    SitePlace,
    column_layout,
    geographic_layout,
    rows_layout,
)

# The width of a drawing in a wide and in a narrow window, in CSS pixels.
WIDTH, NARROW = 1160, 420
MARGIN = 4
BOX_HEIGHT, NOTED, COMPACT_HEIGHT, PADDING = 30, 14, 22, 24
LETTER, SMALL_LETTER, SMALL_LINE = 8, 6.4, 15
LONGEST_NAME = 14
# A drawing with more routers or more links than this is compact: routers are small and have no notes, and
# only unusual links have labels.
COMPACT_ROUTERS, COMPACT_LINKS = 24, 40
_ROOM_FOR_LABELS = 110
_ROW, _COMPACT_ROW, _COMPACT_COLUMN = 96, 48, 128
_FARTHEST = 380
# The width of the title of the box with sites without coordinates. The title in every language fits.
_TITLE_WIDTH = 250
# Possible distances between the middle of a link and the straight line, to avoid routers. Smallest first.
_ASIDE = (0, 36, -36, 72, -72, 112, -112, 160, -160)
_ASIDE_COMPACT = (0, 30, -30, 66, -66)
# The number of layouts that each process caches.
_KEPT = 16
_SHAPES = {"danger": "◆ ", "warning": "▲ "}


@dataclass(frozen=True, slots=True)
class Point:
    """A router to draw.

    * ``note``: the text below the name.
    * ``tone``: the colour, as for badges.
    * ``title``: all facts in words.
    * ``mark``: ``end`` for a router of the selected line, ``chosen`` for the selected router, or "".
    * ``coordinates``: the latitude and longitude of the site in degrees.
    """

    id: Hashable
    name: str
    note: str = ""
    tone: str = "muted"
    title: str = ""
    href: str = ""
    mark: str = ""
    site: str = ""
    coordinates: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """The traffic that a router sends over a link, as ``text``. ``level``: the name of the load's level."""

    text: str
    level: str


@dataclass(frozen=True, slots=True)
class Join:
    """A link to draw, between two routers.

    * ``title``: all facts in words.
    * ``label``: the lines of text next to the link.
    * ``sent``: the traffic from A and from Z. Each is drawn as one half of the link. None if unknown.
    * ``level``: the level of the whole link, if ``sent`` is None.
    * ``odd``: whether the link has a label even in a compact drawing.
    * ``mark``: ``path`` for a link of the selected line, ``path-backup`` for a link that the line uses only
      after a failure, ``chosen`` for the selected link, or "".
    """

    a: Hashable
    z: Hashable
    title: str
    label: tuple[str, ...] = ()
    sent: tuple[Sent, Sent] | None = None
    tone: str = "muted"
    level: str = ""
    odd: bool = True
    href: str = ""
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    at: SafeString


@dataclass(frozen=True, slots=True)
class Box:
    """A router with its place. ``label``: its name, shortened to LONGEST_NAME characters."""

    point: Point
    rect: Rect
    compact: bool

    @property
    def label(self) -> str:
        name = self.point.name
        cut = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
        return _SHAPES.get(self.point.tone, "") + cut if self.compact else cut

    @property
    def note(self) -> str:
        return "" if self.compact else self.point.note

    @property
    def geometry(self) -> SafeString:
        return _geometry(self.rect)

    @property
    def label_at(self) -> SafeString:
        return _at(self._middle, self.rect.top + (18 if self.note else self._tall / 2 + 4))

    @property
    def note_at(self) -> SafeString:
        return _at(self._middle, self.rect.top + 34)

    @property
    def _middle(self) -> float:
        return (self.rect.left + self.rect.right) / 2

    @property
    def _tall(self) -> float:
        return self.rect.bottom - self.rect.top


@dataclass(frozen=True, slots=True)
class Half:
    """One half of a link, or a whole link if the traffic of its halves is unknown."""

    path: str
    level: str


@dataclass(frozen=True, slots=True)
class Line:
    """A link with its place. ``label``: the place of its texts; None if no place is free."""

    join: Join
    curve: Curve
    label: Rect | None

    @property
    def path(self) -> str:
        return self.curve.path

    @property
    def halves(self) -> list[Half]:
        if self.join.sent is None:
            return [Half(self.curve.path, self.join.level)]
        return [Half(path, sent.level) for path, sent in zip(self.curve.halves, self.join.sent, strict=True)]

    @property
    def texts(self) -> list[Text]:
        if self.label is None:
            return []
        middle = (self.label.left + self.label.right) / 2
        lines = _lines(self.join, self.curve)
        return [
            Text(text, _at(middle, self.label.top + SMALL_LINE * (number + 0.8)))
            for number, text in enumerate(lines)
        ]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing. ``frame``: its extent in CSS pixels. ``captions``: the names of sites.

    ``unlocated``: the box around the sites without coordinates; None if there is no such box.
    """

    frame: Rect
    boxes: list[Box]
    lines: list[Line]
    captions: list[Text]
    compact: bool
    unlocated: Rect | None = None

    @property
    def unlocated_geometry(self) -> SafeString:
        return _geometry(self.unlocated) if self.unlocated else SafeString("")

    @property
    def unlocated_title_at(self) -> SafeString:
        if self.unlocated is None:
            return SafeString("")
        return _at(self.unlocated.left + 8, self.unlocated.top + SMALL_LINE)

    @property
    def width(self) -> int:
        return round(self.frame.right - self.frame.left)

    @property
    def height(self) -> int:
        return round(self.frame.bottom - self.frame.top)

    @property
    def view_box(self) -> str:
        return f"{self.frame.left:.0f} {self.frame.top:.0f} {self.width} {self.height}"

    @property
    def size(self) -> str:
        """``small`` (up to 400 pixels wide), ``page`` (up to the width of a page) or ``large``.

        The page scrolls a large drawing.
        """
        if self.width <= 400:
            return "small"
        return "page" if self.width <= WIDTH else "large"


def drawing_of(
    points: Sequence[Point],
    joins: Sequence[Join],
    *,
    first: Hashable | None = None,
    width: int | None = None,
) -> Drawing:
    """Return the drawing of these routers and links.

    ``first``: the leftmost router of a layout in columns. ``width``: the width to fill. If it is None, the
    drawing is as wide as necessary.
    """
    compact = len(points) > COMPACT_ROUTERS or len(joins) > COMPACT_LINKS
    shapes = tuple(_shape(point, compact) for point in points)
    pairs = tuple((join.a, join.z) for join in joins)
    places = _places(shapes, pairs, first, compact, width)
    rects, ways = places.rects, places.ways
    boxes = [Box(point, rect, compact) for point, rect in zip(points, rects, strict=True)]
    captions = [
        Text(name, _at((rect.left + rect.right) / 2, rect.bottom - 3)) for name, rect in places.captions
    ]
    sizes = tuple(
        _label_size(_lines(join, way)) if join.odd or not compact else None
        for join, way in zip(joins, ways, strict=True)
    )
    labels = _labels(places, sizes)
    lines = [Line(join, way, label) for join, way, label in zip(joins, ways, labels, strict=True)]
    frame = _trimmed(places, [label for label in labels if label is not None])
    return Drawing(frame, boxes, lines, captions, compact, places.unlocated)


class _Shape(NamedTuple):
    """The properties of a router that affect the layout. Layouts are cached by these properties."""

    id: Hashable
    name: str
    width: float
    height: float
    site: str
    coordinates: tuple[float, float] | None


class _Places(NamedTuple):
    """The places of routers (``rects``) and links (``ways``), in the order of the input.

    ``captions``: the names of sites, and their places. ``plane``: all these objects. ``drawn``: the rectangle
    around them. ``frame``: a larger rectangle with space for labels. ``unlocated``: the box around the sites
    without coordinates.
    """

    rects: tuple[Rect, ...]
    ways: tuple[Curve, ...]
    captions: tuple[tuple[str, Rect], ...]
    plane: Plane
    frame: Rect
    drawn: Rect
    unlocated: Rect | None


@lru_cache(_KEPT)
def _places(
    shapes: tuple[_Shape, ...],
    pairs: tuple[tuple[Hashable, Hashable], ...],
    first: Hashable | None,
    compact: bool,
    width: int | None,
) -> _Places:
    located, others = _sites(shapes)
    captions, blocks = [], []
    unlocated: Rect | None = None
    if not located:
        rects = _in_columns(shapes, pairs, first, compact, width=width)
    else:
        size = {shape.id: (shape.width, shape.height) for shape in shapes}
        rects = {}
        room = (width or WIDTH) - 2 * MARGIN
        site_places = geographic_layout(located, width=room)
        if others:
            rows = _rows_below(others, [place.block for place in site_places], room)
            unlocated = _box_around([place.block for place in rows])
            site_places += rows
        for place in site_places:
            rects |= {id: Rect.around(spot, *size[id]) for id, spot in place.routers.items()}
            blocks.append((place.name, place.block))
    ways = tuple(curves(pairs, rects, aside=_ASIDE_COMPACT if compact else _ASIDE))
    plane = _plane(rects.values(), ways)
    if unlocated:
        title = Rect(
            unlocated.left, unlocated.top, unlocated.left + _TITLE_WIDTH, unlocated.top + SMALL_LINE + 4
        )
        plane.add(title)
    for name, block in blocks:
        caption = caption_place(block, _text_width(name), CAPTION - 3, plane)
        plane.add(caption)
        captions.append((name, caption))
    boxed = [unlocated] if unlocated else []
    drawn = _around([*rects.values(), *(rect for _name, rect in captions), *boxed], ways)
    frame = _frame(drawn, width=width)
    in_order = tuple(rects[shape.id] for shape in shapes)
    return _Places(in_order, ways, tuple(captions), plane, frame, drawn, unlocated)


@lru_cache(_KEPT)
def _labels(places: _Places, sizes: tuple[tuple[float, float] | None, ...]) -> tuple[Rect | None, ...]:
    """Return the place of each link's label, in order; None if no place is free or no label is needed.

    ``sizes``: the width and height of each label; None if no label is needed.
    """
    labels = [None if size is None else (way, *size) for way, size in zip(places.ways, sizes, strict=True)]
    return tuple(label_places(labels, places.plane, inside=places.frame))


def _shape(point: Point, compact: bool) -> _Shape:
    name = min(len(point.name), LONGEST_NAME)
    if compact:
        # Always leave space for a symbol, so that a router does not move when it becomes silent and gets a
        # symbol.
        width, height = (name + 2) * 6.8 + 8, COMPACT_HEIGHT
    else:
        width = max(name, len(point.note) * SMALL_LETTER / LETTER) * LETTER + PADDING
        height = BOX_HEIGHT + (NOTED if point.note else 0)
    return _Shape(point.id, point.name, width, height, point.site, point.coordinates)


def _sites(shapes: Sequence[_Shape]) -> tuple[list[LocatedSite], list[Site]]:
    """Return two lists: the sites with coordinates, and the sites without coordinates."""
    found: dict[tuple[str, tuple[float, float] | None], dict[Hashable, tuple[float, float]]] = {}
    for shape in sorted(shapes, key=lambda each: (each.name, str(each.id))):
        found.setdefault((shape.site, shape.coordinates), {})[shape.id] = (shape.width, shape.height)
    located, others = [], []
    for (name, coordinates), routers in found.items():
        if coordinates is None:
            others.append(Site(name, routers, _text_width(name)))
        else:
            located.append(LocatedSite(name, routers, _text_width(name), coordinates))
    return located, others


def _rows_below(sites: Sequence[Site], blocks: Sequence[Rect], room: float) -> list[SitePlace]:
    """Return the places of sites in rows below the map, within its width. Space for a title is left above."""
    left = min(min(block.left for block in blocks), MARGIN) + PADDING
    top = max(block.bottom for block in blocks) + _ROW + SMALL_LINE
    return rows_layout(sites, left=left, top=top, width=room - 2 * PADDING)


def _box_around(blocks: Sequence[Rect]) -> Rect:
    """Return the box around the blocks, with space for its title at the top."""
    return Rect(
        min(block.left for block in blocks) - PADDING / 2,
        min(block.top for block in blocks) - SMALL_LINE - PADDING / 2,
        max(max(block.right for block in blocks), min(block.left for block in blocks) + _TITLE_WIDTH)
        + PADDING / 2,
        max(block.bottom for block in blocks) + PADDING / 2,
    )


def _in_columns(
    shapes: Sequence[_Shape],
    pairs: Sequence[tuple[Hashable, Hashable]],
    first: Hashable | None,
    compact: bool,
    *,
    width: int | None,
) -> dict[Hashable, Rect]:
    """Return the rectangles of routers in columns. All have the same width, so that columns are straight."""
    widest = max((shape.width for shape in shapes), default=0)
    apart = max(widest + 24, _COMPACT_COLUMN) if compact else widest + _ROOM_FOR_LABELS
    room = (width or WIDTH) - 2 * MARGIN - widest
    names = {shape.id: shape.name for shape in shapes}
    places = column_layout(names, pairs, fitting=max(int(room // apart) + 1, 2), first=first)
    columns = max((column for column, _row in places.values()), default=0)
    if width and columns:
        apart = min(room / columns, _FARTHEST)
    row_height = _COMPACT_ROW if compact else _ROW
    rects = {}
    for shape in shapes:
        column, row = places[shape.id]
        middle = Spot(MARGIN + widest / 2 + column * apart, (row + 0.5) * row_height)
        rects[shape.id] = Rect.around(middle, widest, shape.height)
    return rects


def _around(rects: Sequence[Rect], ways: Sequence[Curve]) -> Rect:
    corners = [*rects, *(piece.bounds for way in ways for piece in way.pieces)]
    if not corners:
        return Rect(0, 0, 0, 0)
    return Rect(
        min(each.left for each in corners) - MARGIN,
        min(each.top for each in corners) - MARGIN,
        max(each.right for each in corners) + MARGIN,
        max(each.bottom for each in corners) + MARGIN,
    )


def _frame(drawn: Rect, *, width: int | None) -> Rect:
    """Return the area for labels: as wide as the page, with space for three lines of text above and below."""
    spare = max((width - (drawn.right - drawn.left)) / 2, 0) if width else 0
    above = 3 * SMALL_LINE
    # Centre a narrow drawing on the page.
    return Rect(drawn.left - spare, drawn.top - above, drawn.right + spare, drawn.bottom + above)


def _trimmed(places: _Places, labels: Sequence[Rect]) -> Rect:
    """Return the frame without the empty space above and below the drawing and its labels."""
    return places.frame._replace(
        top=min([places.drawn.top, *(label.top for label in labels)]),
        bottom=max([places.drawn.bottom, *(label.bottom for label in labels)]),
    )


def _plane(rects: Iterable[Rect], ways: Iterable[Curve]) -> Plane:
    plane = Plane()
    for rect in rects:
        plane.add(rect.grown(2))
    for way in ways:
        for piece in way.pieces:
            plane.add_piece(piece)
    return plane


def _lines(join: Join, way: Curve) -> list[str]:
    """Return the lines of a link's label: the traffic in each direction with an arrow, then other texts."""
    if join.sent is None:
        return list(join.label)
    across, down = way.z.x - way.a.x, way.z.y - way.a.y
    there, back = "→←" if abs(across) >= abs(down) else "↓↑"
    if (across if abs(across) >= abs(down) else down) < 0:
        there, back = back, there
    arrows = [
        f"{arrow} {sent.text}" for arrow, sent in zip((there, back), join.sent, strict=True) if sent.text
    ]
    return [*arrows, *join.label]


def _label_size(lines: Sequence[str]) -> tuple[float, float]:
    return max((_text_width(line) for line in lines), default=0), SMALL_LINE * len(lines)


def _text_width(text: str) -> float:
    return len(text) * SMALL_LETTER + 4


def _at(x: float, y: float) -> SafeString:
    return mark_safe(f'x="{x:.0f}" y="{y:.0f}"')  # noqa: S308 - numbers alone


def _geometry(rect: Rect) -> SafeString:
    return mark_safe(  # noqa: S308 - numbers alone
        f'x="{rect.left:.0f}" y="{rect.top:.0f}"'
        f' width="{rect.right - rect.left:.0f}" height="{rect.bottom - rect.top:.0f}"'
    )
