"""Drawings of the network: deterministic, without overlaps, and quick for a large network."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devstack.isp import COORDINATES, small_isp
from portal.web.noc.map.map_geometry import Rect
from portal.web.noc.map.svg_map import NARROW, WIDTH, Box, Drawing, Join, Point, Sent, drawing_of

USED = (Sent("30 %", "low"), Sent("9.99 Mbit/s", "some"))


def ring(size: int) -> tuple[list[Point], list[Join]]:
    names = [f"r{number:04}" for number in range(size)]
    around = [*pairwise(names), (names[-1], names[0])]
    return [Point(name, name) for name in names], [Join(a, z, f"{a} {z}", ("MTU 9000",)) for a, z in around]


def demo() -> tuple[list[Point], list[Join]]:
    """Return the routers and links of the demo, at their coordinates."""
    isp = small_isp()
    points = [
        Point(router.name, router.name, "reporting", site=router.site, coordinates=at(router.site))
        for router in isp.routers
    ]
    return points, [Join(link.a, link.z, "", ("MTU 1500",), USED) for link in isp.links]


def at(site: str) -> tuple[float, float]:
    latitude, longitude = COORDINATES[site]
    return float(latitude), float(longitude)


def columns(drawing: Drawing) -> dict[float, set[str]]:
    found: dict[float, set[str]] = {}
    for box in drawing.boxes:
        found.setdefault(middle(box)[0], set()).add(box.point.name)
    return dict(sorted(found.items()))


def middle(box: Box) -> tuple[float, float]:
    return (box.rect.left + box.rect.right) / 2, (box.rect.top + box.rect.bottom) / 2


def place(drawing: Drawing) -> dict[object, tuple[float, float]]:
    return {box.point.id: middle(box) for box in drawing.boxes}


def labels(drawing: Drawing) -> list[Rect]:
    return [line.label for line in drawing.lines if line.label is not None]


def assert_nothing_overlaps(drawing: Drawing) -> None:
    boxes = [box.rect for box in drawing.boxes]
    for one, other in combinations([*boxes, *labels(drawing)], 2):
        assert not one.touches(other), (one, other)
    for line in drawing.lines:
        for label in labels(drawing):
            assert not any(piece.crosses(label) for piece in line.curve.pieces), (line.join.title, label)


def assert_all_is_inside(drawing: Drawing) -> None:
    for rect in [*(box.rect for box in drawing.boxes), *labels(drawing)]:
        assert rect.left >= drawing.frame.left
        assert rect.right <= drawing.frame.right
        assert rect.top >= drawing.frame.top
        assert rect.bottom <= drawing.frame.bottom


@pytest.mark.parametrize("drawn", [demo(), ring(12)], ids=["demo", "twelve"])
def test_a_map_has_all_labels_next_to_their_links_and_fills_its_page(
    drawn: tuple[Sequence[Point], Sequence[Join]],
) -> None:
    drawing = drawing_of(*drawn, width=WIDTH)
    assert_nothing_overlaps(drawing)
    assert_all_is_inside(drawing)
    assert len(labels(drawing)) == len(drawn[1])
    boxes = [box.rect for box in drawing.boxes]
    assert max(box.right for box in boxes) - min(box.left for box in boxes) > 0.75 * WIDTH
    assert drawing.width <= WIDTH


_NETWORKS = st.lists(st.tuples(st.integers(0, 17), st.integers(0, 17)), max_size=30)
_PLACES = st.lists(st.tuples(st.floats(-90, 90), st.floats(-180, 180)), min_size=18, max_size=18)


@settings(deadline=None, max_examples=60)
@given(_NETWORKS, st.none() | _PLACES)
def test_nothing_ever_overlaps(
    pairs: list[tuple[int, int]], places: list[tuple[float, float]] | None
) -> None:
    points = [
        Point(
            number,
            f"r{number}",
            "reporting",
            site=f"s{number % 9}",
            coordinates=places and places[number % 9],
        )
        for number in range(18)
    ]
    joins = [Join(a, z, "", ("MTU 9000",), USED) for a, z in pairs if a != z]
    drawing = drawing_of(points, joins, width=WIDTH)
    assert_nothing_overlaps(drawing)
    assert_all_is_inside(drawing)


def test_routers_are_at_their_sites() -> None:
    where = place(drawing_of(*demo(), width=WIDTH))
    assert where["hippo"][1] < where["rhino"][1] < where["zebra"][1] < where["panda"][1] < where["otter"][1]
    assert where["panda"][0] < where["zebra"][0] < where["hippo"][0] < where["rhino"][0] < where["otter"][0]


def test_a_site_without_coordinates_is_below_the_map_and_the_others_stay() -> None:
    points, joins = demo()
    lost = [replace(point, coordinates=None) if point.id == "zebra" else point for point in points]
    all_there, drawing = drawing_of(points, joins, width=WIDTH), drawing_of(lost, joins, width=WIDTH)
    assert all_there.unlocated is None
    box = drawing.unlocated
    assert box is not None
    inside = [each.point.id for each in drawing.boxes if each.rect.touches(box)]
    assert inside == ["zebra"]
    where = place(drawing)
    assert where["hippo"][1] < where["rhino"][1] < where["panda"][1] < where["otter"][1] < where["zebra"][1]
    assert {text.text for text in drawing.captions} == {text.text for text in all_there.captions}
    assert_nothing_overlaps(drawing)
    assert_all_is_inside(drawing)


@settings(deadline=None, max_examples=40)
@given(_NETWORKS, _PLACES, st.sets(st.integers(0, 8), min_size=1))
def test_nothing_overlaps_whichever_sites_have_no_coordinates(
    pairs: list[tuple[int, int]], places: list[tuple[float, float]], lacking: set[int]
) -> None:
    points = [
        Point(
            number,
            f"r{number}",
            "reporting",
            site=f"s{number % 9}",
            coordinates=None if number % 9 in lacking else places[number % 9],
        )
        for number in range(18)
    ]
    joins = [Join(a, z, "", ("MTU 9000",), USED) for a, z in pairs if a != z]
    for width in (WIDTH, NARROW):
        drawing = drawing_of(points, joins, width=width)
        assert_nothing_overlaps(drawing)
        assert_all_is_inside(drawing)
        assert (drawing.unlocated is None) == (len(lacking) == 9)


def test_routers_of_one_site_are_together_below_its_name() -> None:
    points = [
        Point(name, name, site=site, coordinates=at(site))
        for name, site in (("z1", "Zurich"), ("z2", "Zurich"), ("g1", "Geneva"))
    ]
    drawing = drawing_of(points, [], width=WIDTH)
    where = place(drawing)
    assert where["z1"][0] == where["z2"][0]
    assert 0 < where["z2"][1] - where["z1"][1] < 100
    assert sorted(caption.text for caption in drawing.captions) == ["Geneva", "Zurich"]


def test_no_link_crosses_a_sites_name_if_there_is_space() -> None:
    points = [
        Point(name, name, site=name, coordinates=(latitude, 7.0))
        for name, latitude in (("north", 48.0), ("middle", 47.0), ("south", 46.0))
    ]
    drawing = drawing_of(points, [Join("north", "middle", ""), Join("middle", "south", "")], width=WIDTH)
    across = {caption.text: int(caption.at.split('"')[1]) for caption in drawing.captions}
    assert across["middle"] != round(place(drawing)["middle"][0])


def test_sites_on_both_sides_of_the_date_line_are_neighbours() -> None:
    cities = {
        "Suva": (-18.1, 178.4),
        "Apia": (-13.8, -171.8),
        "Auckland": (-36.8, 174.8),
        "Lima": (-12.0, -77.0),
    }
    points = [Point(name, name, site=name, coordinates=where) for name, where in cities.items()]
    where = place(drawing_of(points, [], width=WIDTH))
    assert where["Auckland"][0] < where["Suva"][0] < where["Apia"][0] < where["Lima"][0]


def test_without_any_coordinates_all_routers_are_in_columns() -> None:
    points, joins = demo()
    drawing = drawing_of([replace(point, coordinates=None) for point in points], joins)
    assert (drawing.captions, drawing.unlocated) == ([], None)


def test_routers_are_in_columns_by_distance_from_the_first() -> None:
    drawn = columns(drawing_of(*ring(5), first="r0000"))
    assert list(drawn.values()) == [{"r0000"}, {"r0001", "r0004"}, {"r0002", "r0003"}]


def test_a_long_chain_is_folded_into_its_page() -> None:
    points, joins = ring(60)
    drawing = drawing_of(points, joins[:-1], width=WIDTH)
    assert drawing.width <= WIDTH
    where = place(drawing)
    across = sorted({x for x, _y in where.values()})
    for a, z in pairwise(f"r{number:04}" for number in range(60)):
        steps = abs(across.index(where[a][0]) - across.index(where[z][0]))
        assert steps <= 1, (a, z)


def test_routers_without_links_are_next_to_each_other() -> None:
    points, joins = ring(5)
    alone = [Point(f"x{number}", f"x{number}") for number in range(4)]
    where = place(drawing_of([*points, *alone], joins, width=WIDTH))
    assert len({where[point.id][1] for point in alone}) == 1


@pytest.mark.parametrize("network", [ring(8), demo()], ids=["columns", "geographic"])
def test_the_order_of_the_input_changes_nothing(network: tuple[list[Point], list[Join]]) -> None:
    points, joins = network
    assert place(drawing_of(points, joins)) == place(drawing_of(points[::-1], joins[::-1]))


def test_parallel_links_are_two_curves() -> None:
    points = [Point("a", "a"), Point("z", "z")]
    joins = [Join("a", "z", "one", ("MTU 9000",)), Join("z", "a", "other", ("MTU 1500",))]
    one, other = drawing_of(points, joins).lines
    assert one.path != other.path
    assert one.label != other.label


def test_a_link_goes_around_a_router_between_its_ends() -> None:
    points = [
        Point(name, name, site=name, coordinates=(47.0, longitude))
        for name, longitude in (("west", 6.0), ("middle", 8.0), ("east", 10.0))
    ]
    drawing = drawing_of(points, [Join("west", "east", "")], width=WIDTH)
    between = next(box.rect for box in drawing.boxes if box.point.id == "middle")
    assert not any(piece.crosses(between) for piece in drawing.lines[0].curve.pieces)


def test_arrows_point_to_the_router_that_receives() -> None:
    points = [
        Point(name, name, site=name, coordinates=(47.0, longitude))
        for name, longitude in (("west", 6.0), ("east", 10.0))
    ]
    sent = (Sent("30 %", "low"), Sent("10 %", "low"))
    drawing = drawing_of(points, [Join("west", "east", "", (), sent), Join("east", "west", "", (), sent)])
    assert [[text.text for text in line.texts] for line in drawing.lines] == [
        ["→ 30 %", "← 10 %"],
        ["← 30 %", "→ 10 %"],
    ]


def test_each_half_of_a_link_shows_the_traffic_of_its_router() -> None:
    points = [Point("a", "a"), Point("z", "z")]
    (line,) = drawing_of(points, [Join("a", "z", "", (), (Sent("90 %", "full"), Sent("1 %", "low")))]).lines
    a, z = line.halves
    assert (a.level, z.level) == ("full", "low")
    assert a.path.startswith(f"M{line.curve.a.x:.0f} ")
    assert z.path.startswith(f"M{line.curve.z.x:.0f} ")


def test_a_full_map_has_labels_only_for_exceptions() -> None:
    points, joins = ring(60)
    quiet = [Join(join.a, join.z, "", join.label, odd=False) for join in joins[1:]]
    drawing = drawing_of(points, [joins[0], *quiet], width=WIDTH)
    assert drawing.compact
    assert [line.join.title for line in drawing.lines if line.label is not None] == [joins[0].title]


def test_neighbours_are_next_to_each_other() -> None:
    """Two rows of three: without the order of neighbours the links to the second column would cross."""
    points = [Point(name, name) for name in ("hub", "a1", "b1", "a2", "b2")]
    joins = [Join(*pair, "") for pair in (("hub", "a1"), ("hub", "b1"), ("a1", "b2"), ("b1", "a2"))]
    height = {id: y for id, (_x, y) in place(drawing_of(points, joins, first="hub")).items()}
    assert (height["a1"] < height["b1"]) == (height["b2"] < height["a2"])


def test_a_long_name_is_cut_and_complete_in_its_title() -> None:
    (box,) = drawing_of([Point("x", "a-router-with-a-long-name")], []).boxes
    assert box.label.endswith("…")
    assert box.point.name == "a-router-with-a-long-name"


def test_an_empty_network_has_no_drawing() -> None:
    assert drawing_of([], []).boxes == []
