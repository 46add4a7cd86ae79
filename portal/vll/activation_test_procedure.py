"""The procedure of an activation test: the frames to send, and the findings from their counts.

The functions do no input or output themselves: the caller's probe sends the frames.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Protocol

# Sizes of Ethernet frames without FCS, in bytes, similar to RFC 2544. The largest promised frame is added.
SIZES = (64, 128, 256, 512, 1024, 1518)
COUNT = 100
# The first frames are lost while routers resolve their neighbours' addresses.
WARM_UP_COUNT = 5
WARM_UP_ROUNDS = 4
# The rounds of the search for the largest frame that passes, and the frames in each round.
SEARCH_ROUNDS = 10
SEARCH_COUNT = 10


class Direction(StrEnum):
    """The direction of the frames."""

    A_TO_Z = "a_to_z"
    Z_TO_A = "z_to_a"

    @property
    def sender(self) -> str:
        """Return the side that sends."""
        return self.value[0]

    @property
    def receiver(self) -> str:
        """Return the side that counts."""
        return self.value[-1]


@dataclass(frozen=True, slots=True)
class Count:
    """The numbers of sent and received frames of one size (bytes) in one direction.

    ``fragmented``: the underlay fragmented the frames.
    """

    frame: int
    sent: int
    received: int
    fragmented: bool = False

    @property
    def passes(self) -> bool:
        """Return whether every frame arrived exactly once and unfragmented."""
        return 0 < self.sent == self.received and not self.fragmented


class Probe(Protocol):
    """A function that sends frames of a size (bytes) in a direction, and counts those that arrive."""

    def __call__(self, direction: Direction, frame: int, count: int) -> Count: ...


class Finding(StrEnum):
    """The reasons why a test did not pass."""

    NOTHING_ARRIVES = "nothing-arrives"
    LARGE_FRAMES_LOST = "large-frames-lost"
    FRAMES_LOST = "frames-lost"


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of a test. ``finding`` is None if the test passed.

    ``directions``: the counts. ``largest_passed``: the largest size (bytes) that passes in both directions;
    None if no size does.
    """

    directions: Mapping[Direction, tuple[Count, ...]]
    largest_passed: int | None
    finding: Finding | None

    @property
    def passed(self) -> bool:
        return self.finding is None

    def as_json(self) -> dict[str, Any]:
        """Return ``directions`` as the API returns them."""
        return {
            direction.value: [asdict(count) for count in counts]
            for direction, counts in self.directions.items()
        }


def sizes_for(largest: int) -> list[int]:
    """Return the sizes to test on a line that promises ``largest`` (bytes)."""
    return [*(size for size in SIZES if size < largest), largest]


def run(
    probe: Probe,
    *,
    largest: int,
    sizes: Iterable[int] | None = None,
    count: int = COUNT,
    warm_up_rounds: int = WARM_UP_ROUNDS,
) -> Findings:
    """Test every size in both directions. If only large frames are lost, search for the largest that passes.

    ``sizes`` (bytes) are tested in addition to ``largest``; None selects the sizes of an activation test.
    ``count``: the number of frames of each size.
    """
    silent = [direction for direction in Direction if not _warm_up(probe, direction, warm_up_rounds)]
    if silent:
        lost = Count(SIZES[0], WARM_UP_COUNT * warm_up_rounds, 0)
        counts = {direction: (lost,) if direction in silent else () for direction in Direction}
        return Findings(counts, None, Finding.NOTHING_ARRIVES)
    tried = _Tried(probe)
    for size in sizes_for(largest) if sizes is None else sorted({*sizes, largest}):
        for direction in Direction:
            tried.count(direction, size, count)
    finding = _finding(tried)
    if finding is Finding.LARGE_FRAMES_LOST:
        _search(tried)
    return Findings(
        {direction: tried.of(direction) for direction in Direction}, tried.largest_passed, finding
    )


@dataclass(slots=True)
class _Tried:
    """The newest count for each size and direction."""

    probe: Probe
    counts: dict[tuple[Direction, int], Count] = field(default_factory=dict)

    def count(self, direction: Direction, size: int, frames: int, *, searching: bool = False) -> None:
        """Send the frames, and send them again if they do not pass: a single loss may be accidental.

        A search expects that large frames are lost. It does not repeat a size if no frame of it arrives.
        """
        for _ in range(2):
            counted = self.counts[direction, size] = self.probe(direction, size, frames)
            if counted.passes or (searching and counted.sent and not counted.received):
                return

    def of(self, direction: Direction) -> tuple[Count, ...]:
        return tuple(count for (where, _), count in sorted(self.counts.items()) if where is direction)

    def passed(self, size: int) -> bool:
        """Return whether this size passes in both directions."""
        counts = [self.counts.get((direction, size)) for direction in Direction]
        return all(count is not None and count.passes for count in counts)

    @property
    def sizes(self) -> list[int]:
        return sorted({size for _, size in self.counts})

    @property
    def largest_passed(self) -> int | None:
        """Return the largest size (bytes) that passes together with all smaller tested sizes.

        Return None if the smallest tested size does not pass.
        """
        passed = None
        for size in self.sizes:
            if not self.passed(size):
                break
            passed = size
        return passed


def _warm_up(probe: Probe, direction: Direction, rounds: int) -> bool:
    return any(probe(direction, SIZES[0], WARM_UP_COUNT).received for _ in range(rounds))


def _finding(tried: _Tried) -> Finding | None:
    passes = [tried.passed(size) for size in tried.sizes]
    if all(passes):
        return None
    # There is a size limit if all sizes up to some size pass, and no larger size.
    if passes[0] and sorted(passes, reverse=True) == passes:
        return Finding.LARGE_FRAMES_LOST
    return Finding.FRAMES_LOST


def _search(tried: _Tried) -> None:
    """Search for the largest size that passes, between the largest that passed and the next tested size.

    Each round divides this gap by four, so ten rounds are enough for any frame.
    """
    for _ in range(SEARCH_ROUNDS):
        low = tried.largest_passed or 0
        high = min(size for size in tried.sizes if size > low)
        if high - low <= 1:
            return
        for middle in sorted({low + (high - low) * part // 4 for part in (1, 2, 3)} - {low, high}):
            for direction in Direction:
                tried.count(direction, middle, SEARCH_COUNT, searching=True)
            if not tried.passed(middle):
                break
