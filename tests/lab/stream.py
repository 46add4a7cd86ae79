"""Numbered frames at a steady rate in both directions of a line, and how often each frame arrived."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from devstack.traffic import Wire
from tests.lab.combinations import Combination

GAP_S = 0.005
# The last frames may still be in transit.
SETTLE_S = 2.0
_MARK = b"longline numbered frame"
_SIZE = 100


@dataclass(frozen=True, slots=True)
class Tally:
    """The result of one direction. `overflowed` counts frames that found the receiving socket full."""

    sent: int
    lost: tuple[int, ...]
    repeated: tuple[int, ...]
    overflowed: int


@dataclass
class _Direction:
    line: Combination
    of: str
    sender: Wire
    receiver: Wire
    sent: int = 0
    arrived: Counter[int] = field(default_factory=Counter)

    def _whole(self, number: int, at: str) -> bytes:
        packet = (_MARK + number.to_bytes(4, "big")).ljust(_SIZE, b"\x5a")
        return self.line.on_the_wire(of=self.of, at=at, packet=packet)

    def send(self, stop: threading.Event) -> None:
        while not stop.wait(GAP_S):
            self.sender.send(self._whole(self.sent, self.of))
            self.sent += 1

    def receive(self, stop: threading.Event) -> None:
        """Read without a pause, so that the socket never fills up."""
        beginning = self._whole(0, "z" if self.of == "a" else "a")
        at = beginning.index(_MARK) + len(_MARK)
        while not stop.is_set():
            whole = self.receiver.receive(timeout_s=0.1)
            if whole is not None and whole[:at] == beginning[:at] and len(whole) == len(beginning):
                self.arrived[int.from_bytes(whole[at : at + 4], "big")] += 1

    def tally(self) -> Tally:
        return Tally(
            sent=self.sent,
            lost=tuple(number for number in range(self.sent) if not self.arrived[number]),
            repeated=tuple(number for number, times in self.arrived.items() if times > 1),
            overflowed=self.receiver.overflowed(),
        )


class Stream:
    """A stream from `flowing` to `stop`. `marks` record the next frame's number when a phase began."""

    def __init__(self, line: Combination, a: Wire, z: Wire) -> None:
        self._directions = [_Direction(line, "a", a, z), _Direction(line, "z", z, a)]
        self._stop_sending, self._stop_receiving = threading.Event(), threading.Event()
        self._senders = [
            threading.Thread(target=each.send, args=(self._stop_sending,)) for each in self._directions
        ]
        self._receivers = [
            threading.Thread(target=each.receive, args=(self._stop_receiving,)) for each in self._directions
        ]
        self.marks: list[tuple[str, tuple[int, ...]]] = []

    def start(self) -> None:
        for wire in (each.receiver for each in self._directions):
            wire.drain()
            wire.overflowed()
        for thread in (*self._receivers, *self._senders):
            thread.start()

    def mark(self, what: str) -> None:
        self.marks.append((what, tuple(each.sent for each in self._directions)))

    def stop(self) -> dict[str, Tally]:
        """Return the results by sending side."""
        self._stop_sending.set()
        for thread in self._senders:
            thread.join()
        if not self._stop_receiving.is_set():
            time.sleep(SETTLE_S)
        self._stop_receiving.set()
        for thread in self._receivers:
            thread.join()
        return {each.of: each.tally() for each in self._directions}

    def during(self, of: str, number: int) -> str:
        """Return the phase in which side `of` sent this frame."""
        which = [each.of for each in self._directions].index(of)
        begun = [what for what, numbers in self.marks if numbers[which] <= number]
        return begun[-1] if begun else "before anything"


@contextmanager
def flowing(line: Combination, a: Wire, z: Wire) -> Iterator[Stream]:
    stream = Stream(line, a, z)
    stream.start()
    try:
        yield stream
    finally:
        stream.stop()
