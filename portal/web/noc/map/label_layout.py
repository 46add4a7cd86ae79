"""The places of links' labels and of sites' names. All values are in pixels."""

from collections.abc import Iterable, Iterator

from portal.web.noc.map.link_curves import Curve
from portal.web.noc.map.map_geometry import Plane, Rect, Spot

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
