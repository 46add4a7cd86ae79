"""Drawings: the same for the same input, nothing on top of anything else, and quick for a large network."""

from itertools import combinations, pairwise

from portal.web.svg_map import BOX_HEIGHT, COLUMN, Drawing, Join, Point, drawing_of


def ring(size: int) -> tuple[list[Point], list[Join]]:
    names = [f"r{number:04}" for number in range(size)]
    around = [*pairwise(names), (names[-1], names[0])]
    return [Point(name, name) for name in names], [Join(a, z, "MTU 9000", f"{a} {z}") for a, z in around]


def columns(drawing: Drawing) -> dict[float, set[str]]:
    found: dict[float, set[str]] = {}
    for box in drawing.boxes:
        found.setdefault(box.x, set()).add(box.spot.name)
    return dict(sorted(found.items()))


def test_routers_stand_in_columns_by_their_distance_from_the_first() -> None:
    drawn = columns(drawing_of(*ring(5), first="r0000"))
    assert list(drawn.values()) == [{"r0000"}, {"r0001", "r0004"}, {"r0002", "r0003"}]
    assert [right - left for left, right in pairwise(drawn)] == [COLUMN, COLUMN]


def test_no_two_routers_stand_on_each_other() -> None:
    spots, joins = ring(12)
    alone = [Point("x", "x"), Point("y", "y")]
    boxes = drawing_of([*spots, *alone], joins).boxes
    for one, other in combinations(boxes, 2):
        assert one.x != other.x or abs(one.y - other.y) >= BOX_HEIGHT, (one, other)


def test_all_of_it_is_inside() -> None:
    drawing = drawing_of(*ring(9))
    for box in drawing.boxes:
        assert box.left >= 0
        assert box.x + box.width / 2 <= drawing.width
        assert box.top >= 0
        assert box.y + box.height / 2 <= drawing.height
    for line in drawing.lines:
        assert line.left >= 0
        assert line.left + line.width <= drawing.width


def test_the_order_of_the_input_changes_nothing() -> None:
    spots, joins = ring(8)
    place = {box.spot.id: (box.x, box.y) for box in drawing_of(spots, joins).boxes}
    again = {box.spot.id: (box.x, box.y) for box in drawing_of(spots[::-1], joins[::-1]).boxes}
    assert place == again


def test_links_side_by_side_are_two_curves() -> None:
    spots = [Point("a", "a"), Point("z", "z")]
    joins = [Join("a", "z", "MTU 9000", "one"), Join("z", "a", "MTU 1500", "other")]
    one, other = drawing_of(spots, joins).lines
    assert one.path != other.path
    assert one.y != other.y


def test_neighbours_are_put_beside_each_other() -> None:
    """Two rows of three: without looking at neighbours the second column would cross."""
    spots = [Point(name, name) for name in ("hub", "a1", "b1", "a2", "b2")]
    joins = [Join(*pair, "", "") for pair in (("hub", "a1"), ("hub", "b1"), ("a1", "b2"), ("b1", "a2"))]
    height = {box.spot.id: box.y for box in drawing_of(spots, joins, first="hub").boxes}
    assert (height["a1"] < height["b1"]) == (height["b2"] < height["a2"])


def test_a_long_name_is_cut_and_whole_in_its_title() -> None:
    (box,) = drawing_of([Point("x", "a-router-with-a-long-name")], []).boxes
    assert box.label.endswith("…")
    assert box.spot.name == "a-router-with-a-long-name"


def test_nothing_is_drawn_of_nothing() -> None:
    assert drawing_of([], []).boxes == []
