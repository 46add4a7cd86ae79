"""Frame arithmetic: from the customer's packet to the IP MTU that the underlay must have.

All sizes are in bytes. Frames are counted without FCS.
"""

from enum import StrEnum

from django.utils.translation import gettext_lazy as _

from portal.core.errors import DomainError
from portal.core.network.encapsulations import Encapsulation, Family, Transport
from portal.core.network.vlan_tags import Tagging

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
