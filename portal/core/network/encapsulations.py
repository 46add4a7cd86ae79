"""The encapsulations of VLLs over IPv4 and IPv6: their cost in VPP, and the MTU that they require.

All sizes are in bytes. Frames are counted without FCS.
"""

from enum import IntEnum, StrEnum
from typing import NamedTuple

from django.utils.translation import gettext_lazy as _

from portal.core.errors import DomainError
from portal.core.network.vlan_tags import Tagging


class Family(IntEnum):
    """The address family of the underlay."""

    V4 = 4
    V6 = 6


class Encapsulation(StrEnum):
    """The methods by which VPP carries a line's frames: a local cross-connect (L2XC), or a tunnel."""

    L2XC = "l2xc"
    VXLAN = "vxlan"
    GENEVE = "geneve"
    GRE = "gre"

    @property
    def leases_vni(self) -> bool:
        """Return whether each VLL has its own 24-bit VNI, as in VXLAN (RFC 7348) and GENEVE (RFC 8926)."""
        return self in (Encapsulation.VXLAN, Encapsulation.GENEVE)


class Transport(StrEnum):
    """An encapsulation together with its address family; ``l2xc`` has none.

    ``Transport("vxlan4")`` parses a name, and raises ValueError for an unknown name. ``str()`` returns the
    name. ``auto``, which orders may contain, is not a transport.
    """

    L2XC = "l2xc"
    VXLAN4 = "vxlan4"
    VXLAN6 = "vxlan6"
    GENEVE4 = "geneve4"
    GENEVE6 = "geneve6"
    GRE4 = "gre4"
    GRE6 = "gre6"

    @property
    def encapsulation(self) -> Encapsulation:
        return Encapsulation(self.value.rstrip("46"))

    @property
    def family(self) -> Family | None:
        """Return the address family of the underlay; None for L2XC, which has no underlay."""
        return None if self is Transport.L2XC else Family(int(self.value[-1]))

    @property
    def display_name(self) -> str:
        """Return the name for a reader, such as ``VXLAN over IPv4``."""
        if self.family is None:
            return str(_("local cross-connect"))
        encapsulation = self.encapsulation.upper()
        return _("{encapsulation} over IPv{family}").format(encapsulation=encapsulation, family=self.family)

    @classmethod
    def of(cls, encapsulation: Encapsulation, family: Family | int | None) -> "Transport":
        """Return the transport of this encapsulation and family. Raises ValueError if there is none."""
        return cls(f"{encapsulation.value}{'' if family is None else int(family)}")


TUNNELS = tuple(transport for transport in Transport if transport is not Transport.L2XC)


class Cost(NamedTuple):
    """The cost of 64-byte frames in VPP, on one core of a Ryzen 5950X.

    ``cycles_per_packet`` does not include the NIC driver. Use it only to rank transports. It is too low to
    compute the load of a rate.
    """

    mpps_per_core: float
    cycles_per_packet: float


COST = {
    Transport.L2XC: Cost(14.88, 132.59),
    Transport.GRE4: Cost(14.34, 171.45),
    Transport.VXLAN4: Cost(14.15, 201.65),
    Transport.GENEVE4: Cost(13.74, 207.44),
    Transport.GRE6: Cost(9.93, 243.35),
    Transport.VXLAN6: Cost(8.54, 355.72),
    Transport.GENEVE6: Cost(8.32, 368.09),
}

# Cheapest first. GRE is used only if nothing else fits (ADR 37), for two reasons:
#
# * VPP before 25.10 has no GRE keys, so each GRE tunnel needs a separate address pair.
# * Other routers cannot distinguish the flows of a GRE line. GRE has no ports, VPP sets no flow label, and
#   few routers hash over a key (RFC 2890) or the inner frame. So all frames of a GRE line take the same
#   one of several equal-cost paths, and the same member of each link group. VXLAN and GENEVE spread flows by
#   the UDP source port (tests/lab/test_outer_ports.py).
AUTO_TUNNELS = tuple(
    sorted(
        TUNNELS,
        key=lambda tunnel: (tunnel.encapsulation is Encapsulation.GRE, -COST[tunnel].mpps_per_core),
    )
)


ETHERNET_HEADER = 14
VLAN_TAG = 4

# MIN_SVC_MTU is the smallest MTU that IPv4 allows (RFC 791). MAX_SVC_MTU is the largest MTU with which a
# frame with two tags has at most 65535 bytes. A longer frame fits no IP packet.
MIN_SVC_MTU = 68
MAX_FRAME = 65535
MAX_SVC_MTU = MAX_FRAME - ETHERNET_HEADER - 2 * VLAN_TAG

IP_HEADER = {Family.V4: 20, Family.V6: 40}  # RFC 791, RFC 8200
# Headers between the IP header and the carried frame.
UDP_VXLAN = 8 + 8  # RFC 768, RFC 7348
UDP_GENEVE = 8 + 8  # RFC 768, RFC 8926 without options
GRE = 4  # RFC 2784
GRE_KEY = 4  # RFC 2890
GRE_SEQUENCE = 4  # RFC 2890
GENEVE_OPTIONS = 16  # reserved by the planning policy for options that may be added later


class MtuPolicy(StrEnum):
    """The headers to count.

    ``exact``: the headers that are sent today. ``planning``: also headers that may be added later.
    """

    EXACT = "exact"
    PLANNING = "planning"


class SvcMtuOutOfRange(DomainError):
    """No VLL can carry packets of this size, over any underlay."""

    text = _("Packets of {value} bytes are not possible. Enter a size from {minimum} to {maximum} bytes.")
    value: int
    minimum: int = MIN_SVC_MTU
    maximum: int = MAX_SVC_MTU
    field: str = "svc_mtu"


def carried_frame(svc_mtu: int, *, carried_tags: int) -> int:
    """Return the size of the largest frame inside the tunnel. Raises SvcMtuOutOfRange."""
    if not MIN_SVC_MTU <= svc_mtu <= MAX_SVC_MTU:
        raise SvcMtuOutOfRange(value=svc_mtu)
    return svc_mtu + ETHERNET_HEADER + VLAN_TAG * carried_tags


def uni_frame(svc_mtu: int, *, tagging: Tagging, carried_tags: int) -> int:
    """Return the size of the largest frame on the wire of a UNI with this tagging. The port must allow it.

    ``carried_tags``: the maximum over both ends. Raises SvcMtuOutOfRange.
    """
    return carried_frame(svc_mtu, carried_tags=carried_tags) + VLAN_TAG * tagging.selecting_tags


def overhead(transport: Transport, policy: MtuPolicy, *, gre_key: bool = False) -> int:
    """Return the bytes from the outer IP header up to the carried frame; 0 for L2XC.

    ``gre_key``: whether a GRE tunnel has a key (RFC 2890). The planning policy always includes the key.
    """
    if transport.family is None:
        return 0
    planning = policy is MtuPolicy.PLANNING
    match transport.encapsulation:
        case Encapsulation.VXLAN:
            tunnel = UDP_VXLAN
        case Encapsulation.GENEVE:
            tunnel = UDP_GENEVE + (GENEVE_OPTIONS if planning else 0)
        case _:
            tunnel = GRE + (GRE_KEY if gre_key or planning else 0) + (GRE_SEQUENCE if planning else 0)
    return IP_HEADER[transport.family] + tunnel


def required_ip_mtu(
    frame: int, transport: Transport, policy: MtuPolicy, *, gre_key: bool = False
) -> int | None:
    """Return the IP MTU that every underlay link needs to carry this frame unfragmented; None for L2XC."""
    if transport is Transport.L2XC:
        return None
    return frame + overhead(transport, policy, gre_key=gre_key)


def largest_svc_mtu(
    ip_mtu: int, transport: Transport, policy: MtuPolicy, *, carried_tags: int, gre_key: bool = False
) -> int | None:
    """Return the largest svc_mtu that a tunnel over this IP MTU carries.

    Return None if even MIN_SVC_MTU does not fit.
    """
    frame = ip_mtu - overhead(transport, policy, gre_key=gre_key)
    svc_mtu = min(frame - ETHERNET_HEADER - VLAN_TAG * carried_tags, MAX_SVC_MTU)
    return svc_mtu if svc_mtu >= MIN_SVC_MTU else None
