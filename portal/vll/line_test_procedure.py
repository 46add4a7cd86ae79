"""The procedure of a line test: frames to send, and what their counts prove. Pure; a probe sends them."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Protocol

# Bytes of an Ethernet frame without FCS, much as RFC 2544 chooses them; the largest promised frame is added.
SIZES = (64, 128, 256, 512, 1024, 1518)
COUNT = 100
# The first frames are lost while routers look for their neighbours.
WARM_UP_COUNT = 5
WARM_UP_ROUNDS = 4
# Rounds that look for the largest frame that passes, and the frames of each.
SEARCH_ROUNDS = 10
SEARCH_COUNT = 10


class Direction(StrEnum):
    """Where the frames go."""

    A_TO_Z = "a_to_z"
    Z_TO_A = "z_to_a"

    @property
    def sender(self) -> str:
        """The side that sends."""
        return self.value[0]

    @property
    def receiver(self) -> str:
        """The side that counts."""
        return self.value[-1]


@dataclass(frozen=True, slots=True)
class Count:
    """Frames of one size (bytes) in one direction. ``fragmented``: the underlay cut them in pieces."""

    frame: int
    sent: int
    received: int
    fragmented: bool = False

    @property
    def passes(self) -> bool:
        """Every frame arrived, whole and once."""
        return 0 < self.sent == self.received and not self.fragmented


class Probe(Protocol):
    """Sends so many frames of a size (bytes) in a direction, and counts what arrives."""

    def __call__(self, direction: Direction, frame: int, count: int) -> Count: ...


class Finding(StrEnum):
    """What a test that did not pass has found."""

    NOTHING_ARRIVES = "nothing-arrives"
    LARGE_FRAMES_LOST = "large-frames-lost"
    FRAMES_LOST = "frames-lost"


@dataclass(frozen=True, slots=True)
class Findings:
    """What was counted. ``largest_passed`` (bytes) passes both ways; None where no size does."""

    directions: Mapping[Direction, tuple[Count, ...]]
    largest_passed: int | None
    finding: Finding | None

    @property
    def passed(self) -> bool:
        return self.finding is None

    def as_json(self) -> dict[str, Any]:
        """``directions`` as the API writes them."""
        return {
            direction.value: [asdict(count) for count in counts]
            for direction, counts in self.directions.items()
        }


def sizes_for(largest: int) -> list[int]:
    """The sizes to try on a line that promises ``largest`` (bytes)."""
    return [*(size for size in SIZES if size < largest), largest]


def run(
    probe: Probe,
    *,
    largest: int,
    sizes: Iterable[int] | None = None,
    count: int = COUNT,
    warm_up_rounds: int = WARM_UP_ROUNDS,
) -> Findings:
    """Both ways: every size, and where only large ones are lost, the largest that passes.

    ``sizes``: besides ``largest``; else those of a line test. ``count``: frames of each.
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
    """The newest count of each size and direction."""

    probe: Probe
    counts: dict[tuple[Direction, int], Count] = field(default_factory=dict)

    def count(self, direction: Direction, size: int, frames: int, *, searching: bool = False) -> None:
        """Send them, and once more where they do not pass: a single loss may be an accident.

        In a search, where large frames are known to be lost, the loss of all that were sent is believed at
        once.
        """
        for _ in range(2):
            counted = self.counts[direction, size] = self.probe(direction, size, frames)
            if counted.passes or (searching and counted.sent and not counted.received):
                return

    def of(self, direction: Direction) -> tuple[Count, ...]:
        return tuple(count for (where, _), count in sorted(self.counts.items()) if where is direction)

    def passed(self, size: int) -> bool:
        """Whether this size passes both ways."""
        counts = [self.counts.get((direction, size)) for direction in Direction]
        return all(count is not None and count.passes for count in counts)

    @property
    def sizes(self) -> list[int]:
        return sorted({size for _, size in self.counts})

    @property
    def largest_passed(self) -> int | None:
        """Below the first size that does not pass: what is lost among larger ones that pass is no border."""
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
    # A border: everything below it passes, and nothing above.
    if passes[0] and sorted(passes, reverse=True) == passes:
        return Finding.LARGE_FRAMES_LOST
    return Finding.FRAMES_LOST


def _search(tried: _Tried) -> None:
    """Quarter the gap between the largest size that passes both ways and the next, until none is left.

    Each round leaves a quarter of it, so that ten are enough for any frame.
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
