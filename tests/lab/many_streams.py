"""Numbered frames over many lines at once in both directions, and how often each frame arrived.

On ports behind a Linux interface, each line gets five frames a second in each direction. A packet generator
sends those of 802.1ad from a file at the same rate.
"""

import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devstack.routers.vpp import Vpp
from devstack.traffic import Wire
from tests.lab import pcap
from tests.lab.handmade_network import HandmadeLine

ROUND_S = 0.2
SETTLE_S = 2.0
_MARK = b"longline numbered frame of line "
_SIZE = 100
# The generator sends at most so many rounds: more than any test lasts.
_GENERATED = 6000

Flow = tuple[HandmadeLine, str]


def payload(line: HandmadeLine, number: int) -> bytes:
    return (_MARK + line.number.to_bytes(2, "big") + number.to_bytes(4, "big")).ljust(_SIZE, b"\x5a")


@dataclass
class _Received:
    """The frames that arrived: numbers by flow with their count, and frames that are not as expected."""

    lines: Mapping[int, HandmadeLine]
    arrived: dict[Flow, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    unexpected: list[bytes] = field(default_factory=list)

    def take(self, whole: bytes, *, at: tuple[str, str]) -> None:
        begins = whole.find(_MARK)
        if begins < 0:
            return
        text = whole[begins + len(_MARK) :]
        line, number = self.lines[int.from_bytes(text[:2], "big")], int.from_bytes(text[2:6], "big")
        for of, far in (("a", "z"), ("z", "a")):
            expected = line.on_the_wire(of=of, at=far, payload=payload(line, number))
            if line.place(far) == at and whole == expected:
                self.arrived[line, of][number] += 1
                return
        self.unexpected.append(whole)

    def complaints(self) -> list[str]:
        return [f"not as expected: {whole.hex()}" for whole in self.unexpected[:5]]


class ManyStreams:
    """Streams from ``start`` to ``stop``. Lines that ``leave`` names get no more frames."""

    def __init__(self, lines: Iterable[HandmadeLine], wires: Mapping[tuple[str, str], Wire]) -> None:
        self._lines, self._wires = list(lines), wires
        self._left: set[HandmadeLine] = set()
        self._received = _Received({line.number: line for line in self._lines})
        self._sent: Counter[Flow] = Counter()
        self._stop_sending, self._stop_receiving = threading.Event(), threading.Event()
        self._sender = threading.Thread(target=self._send)
        self._receivers = [threading.Thread(target=self._receive, args=(at,)) for at in wires]

    def start(self) -> None:
        for wire in self._wires.values():
            wire.drain()
            wire.overflowed()
        for thread in (*self._receivers, self._sender):
            thread.start()

    def _send(self) -> None:
        while not self._stop_sending.wait(ROUND_S):
            for line in self._lines:
                for of in "az" if line not in self._left else "":
                    number = self._sent[line, of]
                    self._wires[line.place(of)].send(
                        line.on_the_wire(of=of, at=of, payload=payload(line, number))
                    )
                    self._sent[line, of] = number + 1

    def _receive(self, at: tuple[str, str]) -> None:
        while not self._stop_receiving.is_set():
            whole = self._wires[at].receive(timeout_s=0.1)
            if whole is not None:
                self._received.take(whole, at=at)

    def leave(self, lines: Iterable[HandmadeLine]) -> None:
        """Stop sending on these lines, and return when their last frames have arrived or are lost."""
        self._left |= set(lines)
        time.sleep(ROUND_S * 3 + SETTLE_S)

    def stop(self) -> None:
        self._stop_sending.set()
        self._sender.join()
        time.sleep(SETTLE_S)
        self._stop_receiving.set()
        for thread in self._receivers:
            thread.join()

    def complaints(self) -> list[str]:
        """Return the frames that the test's own sockets lost, and those that arrived in another form."""
        full = {at: wire.overflowed() for at, wire in self._wires.items()}
        return [
            f"{at}: {n} found the socket full" for at, n in full.items() if n
        ] + self._received.complaints()

    def losses(self) -> dict[Flow, str]:
        return _losses(self._sent, self._received)

    @property
    def frames(self) -> int:
        return self._sent.total()


class GeneratedStreams:
    """The same for lines whose customers are packet generators; ``generators`` by router and port."""

    def __init__(
        self, lines: Iterable[HandmadeLine], vpp: Vpp, generators: Mapping[tuple[str, str], str], folder: Path
    ) -> None:
        self._lines, self._vpp, self._generators, self._folder = list(lines), vpp, generators, folder
        self._flows: dict[tuple[str, str], list[Flow]] = defaultdict(list)
        for line in self._lines:
            for of in "az":
                self._flows[line.place(of)].append((line, of))
        self._sent: Counter[Flow] = Counter()
        self._received = _Received({line.number: line for line in self._lines})

    def start(self) -> None:
        for at in self._flows:
            self._vpp.configure(
                f"packet-generator capture {self._generators[at]} pcap {self._capture(at)} count {_GENERATED}"
            )
        for at, flows in self._flows.items():
            source = self._folder / f"many-{self._generators[at]}.pcap"
            frames = [
                line.on_the_wire(of=of, at=of, payload=payload(line, number // len(flows)))
                for number in range(_GENERATED)
                for line, of in [flows[number % len(flows)]]
            ]
            pcap.write(source, frames)
            rate = len(flows) / ROUND_S
            self._vpp.configure(
                f"packet-generator new pcap {source} source {self._generators[at]} name {self._name(at)}"
                f" limit {_GENERATED} rate {rate:g}",
                f"packet-generator enable-stream {self._name(at)}",
            )

    def stop(self) -> None:
        for at, flows in self._flows.items():
            self._vpp.configure(f"packet-generator disable-stream {self._name(at)}")
            text = self._vpp.show("show packet-generator")
            found = re.search(rf"^\s*{self._name(at)}\s+\S+\s+(\d+)", text, re.MULTILINE)
            assert found is not None, text
            sent = int(found[1])
            assert 0 < sent < _GENERATED, text
            for n, flow in enumerate(flows):
                self._sent[flow] = (sent - n + len(flows) - 1) // len(flows)
        time.sleep(SETTLE_S)
        for at in self._flows:
            self._vpp.configure(f"packet-generator capture {self._generators[at]} disable")
            for whole in pcap.read(self._capture(at)):
                self._received.take(whole, at=at)
            self._vpp.configure(f"packet-generator delete {self._name(at)}")

    def complaints(self) -> list[str]:
        return self._received.complaints()

    def losses(self) -> dict[Flow, str]:
        return _losses(self._sent, self._received)

    @property
    def frames(self) -> int:
        return self._sent.total()

    def _capture(self, at: tuple[str, str]) -> Path:
        return self._folder / f"many-{self._generators[at]}-came.pcap"

    def _name(self, at: tuple[str, str]) -> str:
        return f"many-{self._generators[at]}"


def _losses(sent: Mapping[Flow, int], received: _Received) -> dict[Flow, str]:
    """Return the lost and the duplicate frames of each flow that has any."""
    found = {}
    for (line, of), count in sent.items():
        arrived = received.arrived[line, of]
        lost = [number for number in range(count) if not arrived[number]]
        twice = [number for number, times in arrived.items() if times > 1]
        if lost or twice or not count:
            found[line, of] = f"of {count} lost {lost[:10]} ({len(lost)}), twice {twice[:10]}"
    return found
