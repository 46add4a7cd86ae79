"""A customer that sends: `python -m devstack.traffic NAMESPACE --vlan 100 --rate-bps 5000000`.

It sends frames at an even rate, and no program receives them. For traffic in both directions, run one sender
at each end. ``Wire`` sends and receives Ethernet frames, byte for byte, on a Linux interface (packet(7)).
"""

import argparse
import secrets
import select
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from devstack.routers import netns
from devstack.routers.vpp_network import UNI
from portal.core.errors import DomainError
from portal.core.quantities import whole_rate

DOT1Q = 0x8100
DOT1AD = 0x88A8
# The EtherType "local experimental" of IEEE 802. No device on the path processes such frames.
EXPERIMENTAL = 0x88B5
HEADER = 14
TAG = 4

_ETH_P_ALL = 0x0003
_SOL_PACKET = 263
_PACKET_STATISTICS = 6
_PACKET_AUXDATA = 8
_PACKET_IGNORE_OUTGOING = 23
_TP_STATUS_VLAN_VALID = 0x10
_TP_STATUS_VLAN_TPID_VALID = 0x40
# struct tpacket_auxdata in linux/if_packet.h: status, len, snaplen, mac, net, vlan_tci, vlan_tpid.
_AUXDATA = struct.Struct("=IIIHHHH")
# struct tpacket_stats in linux/if_packet.h: packets, drops.
_STATISTICS = struct.Struct("=II")
_LARGEST = 65536


@dataclass(frozen=True, slots=True)
class Tag:
    """A VLAN tag (IEEE 802.1Q): its type and its VLAN id. The priority is 0."""

    vlan: int
    tpid: int = DOT1Q

    def encode(self) -> bytes:
        return struct.pack("!HH", self.tpid, self.vlan)


def frame(*, destination: bytes, source: bytes, tags: Sequence[Tag] = (), payload: bytes) -> bytes:
    """Return a frame without FCS. The first of ``tags`` is the outermost tag."""
    return (
        destination
        + source
        + b"".join(tag.encode() for tag in tags)
        + struct.pack("!H", EXPERIMENTAL)
        + payload
    )


class Wire:
    """A raw socket on one interface in a namespace. Frames are complete, with all tags and without FCS."""

    def __init__(self, namespace: str, interface: str) -> None:
        self._socket = netns.inside(
            namespace, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
        )
        # The kernel removes the outer tag from the frame and delivers it separately.
        self._socket.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, 1)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        self._socket.bind((interface, 0))
        self.drain()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, content: bytes) -> None:
        """Send a frame. Raises OSError with EMSGSIZE if the frame exceeds the interface's MTU."""
        self._socket.send(content)

    def receive(self, *, timeout_s: float) -> bytes | None:
        """Return the next frame, with its outer tag restored. Return None if no frame arrives in time."""
        if not select.select([self._socket], [], [], timeout_s)[0]:
            return None
        data, ancillary, _, _ = self._socket.recvmsg(_LARGEST, socket.CMSG_SPACE(_AUXDATA.size))
        return _with_outer_tag(data, ancillary)

    def expect(self, expected: bytes, *, timeout_s: float) -> str | None:
        """Wait for exactly this frame.

        Return None if it has arrived. Otherwise return a sentence about the frames that have arrived.
        """
        others: list[bytes] = []
        deadline = time.monotonic() + timeout_s
        while (left := deadline - time.monotonic()) > 0:
            received = self.receive(timeout_s=left)
            if received == expected:
                return None
            if received is not None:
                others.append(received)
        return difference(expected, others)

    def overflowed(self) -> int:
        """Return the number of frames since the last call that were lost because the socket was full."""
        statistics = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, _STATISTICS.size)
        drops: int = _STATISTICS.unpack(statistics)[1]
        return drops

    def drain(self) -> None:
        """Discard all received frames. Frames from before bind() may come from other interfaces."""
        while self.receive(timeout_s=0) is not None:
            pass


def difference(expected: bytes, others: Sequence[bytes]) -> str:
    """Return a sentence about the difference between the expected frame and a frame that arrived."""
    if not others:
        return f"no frame came instead of {len(expected)} bytes"
    first = others[0]
    at = next(
        (n for n, (a, b) in enumerate(zip(expected, first, strict=False)) if a != b),
        min(len(expected), len(first)),
    )
    return (
        f"{len(others)} other frame(s) came; the first has {len(first)} bytes instead of {len(expected)}"
        f" and differs from byte {at}: {first[at : at + 8].hex()} instead of {expected[at : at + 8].hex()}"
    )


def _with_outer_tag(data: bytes, ancillary: list[tuple[int, int, bytes]]) -> bytes:
    for level, kind, value in ancillary:
        if (level, kind) != (_SOL_PACKET, _PACKET_AUXDATA):
            continue
        status, _, _, _, _, tci, tpid = _AUXDATA.unpack(value[: _AUXDATA.size])
        if status & _TP_STATUS_VLAN_VALID:
            tpid = tpid if status & _TP_STATUS_VLAN_TPID_VALID else DOT1Q
            return data[:12] + struct.pack("!HH", tpid, tci) + data[12:]
    return data


FRAME_BYTES = 1400
# Seconds between wake-ups. Each wake-up sends several frames: a coarse timer does not change the rate.
BURST_S = 0.02


def send_forever(wire: Wire, content: bytes, *, rate_bps: float) -> None:
    started, sent = time.monotonic(), 0
    while True:
        due = int((time.monotonic() - started) * rate_bps / (len(content) * 8))
        for _ in range(due - sent):
            wire.send(content)
        sent = max(sent, due)
        time.sleep(BURST_S)


def _rate(text: str) -> int:
    try:
        return whole_rate(text)
    except DomainError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("namespace")
    parser.add_argument("--vlan", type=int, required=True)
    parser.add_argument("--rate-bps", type=_rate, required=True, help="5000000, or with a unit: 5M")
    options = parser.parse_args()
    content = frame(
        destination=bytes.fromhex("ffffffffffff"),
        source=b"\x02" + secrets.token_bytes(5),
        tags=[Tag(options.vlan)],
        payload=secrets.token_bytes(FRAME_BYTES - HEADER - TAG),
    )
    with Wire(options.namespace, UNI) as wire:
        send_forever(wire, content, rate_bps=options.rate_bps)


if __name__ == "__main__":
    main()
