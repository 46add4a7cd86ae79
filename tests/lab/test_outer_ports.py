"""The outer headers of a line's flows, which spread them over equal-cost paths and link groups.

Routers on the path distinguish flows by outer addresses, protocol, ports and the IPv6 flow label (RFC 6438,
RFC 7348 section 5). VXLAN and GENEVE put a hash of the inner flow into the source port; GRE has no ports.
"""

import socket
import struct
import time
from dataclasses import dataclass

import pytest

from devstack.traffic import HEADER, Wire
from tests.lab.combinations import STATIONS, Combination
from tests.lab.conftest import Lab
from tests.lab.lab_line import in_service

FLOWS = 64
AT_LEAST = 32
WITHIN_S = 20
UDP, GRE, IPV4, IPV6 = 17, 47, 0x0800, 0x86DD
_MARK = b"longline inner flow"
_OUTER = {
    IPV4: struct.Struct("!9xB2x4s4s"),
    IPV6: struct.Struct("!I2xBx16s16s"),
}


@dataclass(frozen=True, slots=True)
class Outer:
    """The fields by which a router on the path may distinguish flows; ``port`` is the UDP source port."""

    addresses: tuple[bytes, bytes]
    protocol: int
    label: int = 0
    port: int | None = None


def outer_of(whole: bytes) -> Outer:
    """Return the outer headers of an untagged frame that carries IP without options."""
    (kind,) = struct.unpack_from("!H", whole, HEADER - 2)
    header = _OUTER[kind]
    if kind == IPV4:
        protocol, source, destination = header.unpack_from(whole, HEADER)
        label = 0
    else:
        first, protocol, source, destination = header.unpack_from(whole, HEADER)
        label = first & 0xFFFFF
    port = struct.unpack_from("!H", whole, HEADER + header.size)[0] if protocol == UDP else None
    return Outer((source, destination), protocol, label, port)


def inner_flow(line: Combination, number: int) -> bytes:
    """Return a frame of side a with UDP over IPv4; flows differ in the source port only."""
    payload = _MARK + bytes([number])
    datagram = struct.pack("!HHHH", 10_000 + number, 7_000, 8 + len(payload), 0) + payload
    addresses = socket.inet_aton("198.51.100.1"), socket.inet_aton("198.51.100.2")
    packet = (
        struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(datagram), 0, 0, 64, UDP, 0, *addresses) + datagram
    )
    tag = line.on_the_wire(of="a", at="a", packet=b"")[2 * len(STATIONS["a"]) : -2]
    return STATIONS["z"] + STATIONS["a"] + tag + struct.pack("!H", IPV4) + packet


def outer_headers(lab: Lab, line: Combination) -> dict[int, Outer]:
    """Return the outer headers by inner flow, at the far end of the link between the routers."""
    a, _ = lab.ends(line.transport, line.tagging).values()
    sender = lab.wire(*a)
    found: dict[int, Outer] = {}
    with Wire(lab.dataplane.router_namespaces["hippo"], "bb-rhino") as link:
        deadline = time.monotonic() + WITHIN_S
        while len(found) < FLOWS and time.monotonic() < deadline:
            for number in set(range(FLOWS)) - set(found):
                sender.send(inner_flow(line, number))
            while (whole := link.receive(timeout_s=0.2)) is not None:
                before, mark, number = whole.partition(_MARK)
                if mark:
                    found[number[0]] = outer_of(before)
    return found


@pytest.mark.parametrize("transport", ["vxlan4", "vxlan6", "geneve4", "geneve6"])
def test_inner_flows_get_different_outer_source_ports(lab: Lab, transport: str) -> None:
    line = Combination(transport, "dot1q")
    with in_service(lab, line):
        outer = outer_headers(lab, line)
    assert sorted(outer) == list(range(FLOWS))
    ports = {each.port for each in outer.values()}
    assert None not in ports
    assert len(ports) >= AT_LEAST, f"{FLOWS} inner flows have {len(ports)} outer source ports"
    lab.report.append(f"lab {line}: {FLOWS} inner flows, {len(ports)} outer source ports")


@pytest.mark.parametrize("transport", ["gre4", "gre6"])
def test_all_flows_of_a_gre_line_have_the_same_outer_headers(lab: Lab, transport: str) -> None:
    """For this reason ``auto`` prefers other transports. Reconsider once VPP sets a flow label for GRE."""
    line = Combination(transport, "dot1q")
    with in_service(lab, line):
        outer = outer_headers(lab, line)
    assert sorted(outer) == list(range(FLOWS))
    assert len(set(outer.values())) == 1
    assert outer[0].protocol == GRE
    lab.report.append(f"lab {line}: {FLOWS} inner flows, one outer header")
