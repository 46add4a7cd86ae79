"""Customers of the lab: they send a frame and check whether it arrived at the other end.

Linux namespaces play the customers, except for tags of type 0x88a8. VPP's host-interface sees that type in
metadata only and drops the frame as "unknown vlan". A third VPP therefore plays those customers over memif.
"""

import re
import time
from itertools import count
from pathlib import Path
from typing import Protocol

from devstack.routers.vpp import Vpp
from devstack.traffic import difference
from tests.lab import pcap

CONNECTED_WITHIN_S = 10


class Customer(Protocol):
    def drain(self) -> None:
        """Discard the frames that have arrived so far."""

    def send(self, whole: bytes) -> None: ...

    def expect(self, whole: bytes, *, timeout_s: float) -> str | None:
        """Return None if exactly this frame arrives, else a sentence about what arrived instead."""


class MemifCustomer:
    """One memif of the third VPP, cross-connected to a packet generator interface."""

    _POLL_S = 0.05
    _numbers = count()

    def __init__(self, vpp: Vpp, number: int, folder: Path) -> None:
        """``number`` numbers the socket, the memif and the generator."""
        self.vpp, self.generator, self.folder = vpp, f"pg{number}", folder
        self._number, self.interface = number, f"memif{number}/0"
        self._capture = folder / "none"
        self._is_plugged_in = False

    def plug_in(self) -> None:
        """Connect to the router's memif and to the generator, if they are not connected yet."""
        if self._is_plugged_in:
            return
        self._is_plugged_in = True
        self.vpp.configure(
            f"create interface memif id 0 socket-id {self._number} slave buffer-size 10240 no-zero-copy",
            f"set interface state {self.interface} up",
            f"set interface l2 xconnect {self.generator} {self.interface}",
            f"set interface l2 xconnect {self.interface} {self.generator}",
        )

    def unplug(self) -> None:
        """Delete this memif, because a shutdown would not take down the link of the router's memif."""
        self._is_plugged_in = False
        self.vpp.configure(f"delete interface memif {self.interface}")

    def drain(self) -> None:
        if self._capture.exists():
            self.vpp.configure(f"packet-generator capture {self.generator} disable")
        self._capture = self.folder / f"capture-{next(self._numbers)}.pcap"
        self.vpp.configure(f"packet-generator capture {self.generator} pcap {self._capture} count 1000")

    def send(self, whole: bytes) -> None:
        stream = f"stream{next(self._numbers)}"
        source = self.folder / f"{stream}.pcap"
        pcap.write(source, [whole])
        self.vpp.configure(
            f"packet-generator new pcap {source} source {self.generator} name {stream} limit 1",
            f"packet-generator enable-stream {stream}",
        )

    def expect(self, whole: bytes, *, timeout_s: float) -> str | None:
        deadline = time.monotonic() + timeout_s
        while whole not in (arrived := pcap.read(self._capture)):
            if time.monotonic() > deadline:
                return difference(whole, arrived)
            time.sleep(self._POLL_S)
        return None


def connect_memif(
    *, router: Vpp, customer: Vpp, socket_id: int, generator: int, folder: Path
) -> MemifCustomer:
    """Join memif<socket_id>/0 of `router` to a packet generator of `customer`.

    When a memif connects, VPP polls each of its queues and ignores the mode that was set before. The mode is
    therefore set after the connection.
    """
    socket = folder / f"memif-{generator}.sock"
    outside = f"memif{socket_id}/0"
    router.configure(
        f"create memif socket id {socket_id} filename {socket}",
        f"create interface memif id 0 socket-id {socket_id} master no-zero-copy",
        f"set interface state {outside} up",
    )
    connected = MemifCustomer(customer, generator, folder)
    customer.configure(
        f"create memif socket id {generator} filename {socket}",
        f"create packet-generator interface {connected.generator}",
        f"set interface state {connected.generator} up",
    )
    connected.plug_in()
    rest_when_idle(router, outside, connected)
    return connected


def rest_when_idle(router: Vpp, outside: str, customer: MemifCustomer) -> None:
    """Set both memifs to interrupt mode once they are connected; a new connection resets the mode."""
    for vpp, interface in ((router, outside), (customer.vpp, customer.interface)):
        _wait_until_connected(vpp, interface)
        vpp.configure(f"set interface rx-mode {interface} interrupt")


def _wait_until_connected(vpp: Vpp, interface: str) -> None:
    deadline = time.monotonic() + CONNECTED_WITHIN_S
    while re.search(r"flags [^\n]*\bconnected", vpp.show(f"show memif {interface}")) is None:
        assert time.monotonic() < deadline, f"{interface} has no peer after {CONNECTED_WITHIN_S} s"
        time.sleep(0.05)
