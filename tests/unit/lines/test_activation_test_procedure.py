"""The procedure of an activation test: it finds loss and the largest frame of the underlay."""

from collections import Counter
from collections.abc import Callable

import pytest

from portal.vll.activation_test_procedure import (
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
    """An underlay that carries frames up to ``largest`` bytes per direction, and records the sent frames."""

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
    """Return a probe of this underlay that loses some frames of each size."""

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
def test_all_sizes_of_the_line_and_its_largest_promised_one_are_tested(
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


def test_a_search_accepts_a_total_loss_immediately() -> None:
    underlay = Underlay(a_to_z=8004)
    run(underlay, largest=8950)
    searched = Counter((direction, size) for direction, size, count in underlay.sent if count == SEARCH_COUNT)
    assert searched
    assert set(searched.values()) == {1}


def test_a_search_retries_unsent_frames() -> None:
    """A busy router may send none of a burst, which is no evidence of loss."""
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


def test_frames_lost_during_neighbour_discovery_are_no_evidence() -> None:
    assert run(Underlay(deaf=3), largest=1518).passed


@pytest.mark.parametrize("dead", BOTH)
def test_without_any_arrival_no_size_is_searched(dead: Direction) -> None:
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
    """Late frames of the previous size, or copies, would hide the same number of lost frames."""
    found = run(losing(Underlay(), lambda direction, frame: -int(frame == 512)), largest=1518)
    assert (found.finding, found.largest_passed) == (Finding.FRAMES_LOST, 256)


def test_frames_that_arrive_in_pieces_do_not_pass() -> None:
    def probe(direction: Direction, frame: int, count: int) -> Count:
        return Count(frame, count, count, fragmented=frame > 8000)

    found = run(probe, largest=8950)
    assert (found.finding, found.largest_passed) == (Finding.LARGE_FRAMES_LOST, 8000)


def test_a_test_without_sent_frames_has_no_result() -> None:
    found = run(lambda direction, frame, count: Count(frame, 0, 0), largest=1518)
    assert found.finding is Finding.NOTHING_ARRIVES


def test_the_result_has_the_form_of_the_api() -> None:
    result = run(Underlay(), largest=128).as_json()
    assert result == {
        key: [{"frame": frame, "sent": COUNT, "received": COUNT, "fragmented": False} for frame in (64, 128)]
        for key in ("a_to_z", "z_to_a")
    }
