"""The encapsulations of VLLs over IPv4 and IPv6, and the cost of each in VPP."""

from enum import IntEnum, StrEnum
from typing import NamedTuple

from django.utils.translation import gettext_lazy as _


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
