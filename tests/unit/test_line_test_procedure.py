"""A line test finds what the underlay does to frames, and the largest that it carries."""

from collections import Counter
from collections.abc import Callable

import pytest

from portal.vll.line_test_procedure import (
    COUNT,
    SEARCH_COUNT,
    Count,
    Direction,
    Finding,
    Probe,
    run,
    sizes_for,
)

BOTH = tuple(Direction)


class Underlay:
    """Carries frames up to ``largest`` bytes, each way its own, and remembers what was sent."""

    def __init__(self, a_to_z: int = 65535, z_to_a: int = 65535, deaf: int = 0) -> None:
        self.largest = {Direction.A_TO_Z: a_to_z, Direction.Z_TO_A: z_to_a}
        self.deaf = deaf
        self.sent: list[tuple[Direction, int, int]] = []

    def __call__(self, direction: Direction, frame: int, count: int) -> Count:
        self.sent.append((direction, frame, count))
        if self.deaf:
            self.deaf -= 1
            return Count(frame, count, 0)
        return Count(frame, count, count if frame <= self.largest[direction] else 0)


def losing(underlay: Underlay, loses: Callable[[Direction, int], int]) -> Probe:
    """The same, but so many of the frames of a size are lost."""

    def probe(direction: Direction, frame: int, count: int) -> Count:
        counted = underlay(direction, frame, count)
        return Count(frame, count, max(0, counted.received - loses(direction, frame)))

    return probe


@pytest.mark.parametrize(
    ("largest", "sizes"),
    [
        (82, [64, 82]),
        (1514, [64, 128, 256, 512, 1024, 1514]),
        (1518, [64, 128, 256, 512, 1024, 1518]),
        (8950, [64, 128, 256, 512, 1024, 1518, 8950]),
    ],
)
def test_every_size_that_the_line_carries_is_tried_and_the_largest_it_promises(
    largest: int, sizes: list[int]
) -> None:
    assert sizes_for(largest) == sizes


def test_a_good_line_passes_with_a_hundred_frames_of_each_size_each_way() -> None:
    found = run(Underlay(), largest=8950)
    assert found.passed
    assert found.largest_passed == 8950
    for direction in BOTH:
        assert [(count.frame, count.sent, count.received) for count in found.directions[direction]] == [
            (size, COUNT, COUNT) for size in sizes_for(8950)
        ]


@pytest.mark.parametrize("carried", [1518, 1519, 8003, 8004, 8949])
@pytest.mark.parametrize("narrow", BOTH)
def test_a_link_that_carries_less_is_measured_to_the_byte_in_ten_rounds(
    carried: int, narrow: Direction
) -> None:
    underlay = Underlay(**{narrow.value: carried})
    found = run(underlay, largest=8950)
    assert found.finding is Finding.LARGE_FRAMES_LOST
    assert found.largest_passed == carried
    tried = {size for _, size, _ in underlay.sent}
    assert len(tried - set(sizes_for(8950))) <= 10 * 3


def test_a_search_believes_at_once_that_all_were_lost() -> None:
    underlay = Underlay(a_to_z=8004)
    run(underlay, largest=8950)
    searched = Counter((direction, size) for direction, size, count in underlay.sent if count == SEARCH_COUNT)
    assert searched
    assert set(searched.values()) == {1}


def test_a_search_tries_again_what_was_not_sent() -> None:
    """A router that is busy may send none of a burst: that proves nothing."""
    underlay, unsent = Underlay(a_to_z=8004), set[int]()

    def probe(direction: Direction, frame: int, count: int) -> Count:
        if count == SEARCH_COUNT and frame not in unsent:
            unsent.add(frame)
            return Count(frame, 0, 0)
        return underlay(direction, frame, count)

    found = run(probe, largest=8950)
    assert unsent
    assert found.largest_passed == 8004


def test_the_largest_frame_of_all_is_found_in_ten_rounds() -> None:
    assert run(Underlay(a_to_z=1700), largest=65535).largest_passed == 1700


def test_frames_lost_while_neighbours_are_looked_for_prove_nothing() -> None:
    assert run(Underlay(deaf=3), largest=1518).passed


@pytest.mark.parametrize("dead", BOTH)
def test_where_nothing_arrives_no_size_is_tried(dead: Direction) -> None:
    underlay = Underlay(**{dead.value: 0})
    found = run(underlay, largest=8950)
    assert (found.finding, found.largest_passed) == (Finding.NOTHING_ARRIVES, None)
    assert [count.received for count in found.directions[dead]] == [0]
    assert {size for _, size, _ in underlay.sent} == {64}


def test_a_single_loss_is_sent_again() -> None:
    lost = iter([0, 0, 1])
    assert run(losing(Underlay(), lambda direction, frame: next(lost, 0)), largest=1518).passed


def test_loss_at_every_size_is_no_border() -> None:
    found = run(losing(Underlay(), lambda direction, frame: 1), largest=1518)
    assert (found.finding, found.largest_passed) == (Finding.FRAMES_LOST, None)


def test_loss_among_sizes_that_pass_is_no_border_either() -> None:
    found = run(losing(Underlay(), lambda direction, frame: int(frame == 512)), largest=1518)
    assert (found.finding, found.largest_passed) == (Finding.FRAMES_LOST, 256)


def test_more_frames_than_were_sent_do_not_pass_either() -> None:
    """Late ones of the size before, or copies: they would hide as many that were lost."""
    found = run(losing(Underlay(), lambda direction, frame: -int(frame == 512)), largest=1518)
    assert (found.finding, found.largest_passed) == (Finding.FRAMES_LOST, 256)


def test_frames_that_arrive_in_pieces_do_not_pass() -> None:
    def probe(direction: Direction, frame: int, count: int) -> Count:
        return Count(frame, count, count, fragmented=frame > 8000)

    found = run(probe, largest=8950)
    assert (found.finding, found.largest_passed) == (Finding.LARGE_FRAMES_LOST, 8000)


def test_nothing_sent_proves_nothing() -> None:
    found = run(lambda direction, frame, count: Count(frame, 0, 0), largest=1518)
    assert found.finding is Finding.NOTHING_ARRIVES


def test_the_result_is_written_as_the_api_shows_it() -> None:
    told = run(Underlay(), largest=128).as_json()
    assert told == {
        way: [{"frame": frame, "sent": COUNT, "received": COUNT, "fragmented": False} for frame in (64, 128)]
        for way in ("a_to_z", "z_to_a")
    }
