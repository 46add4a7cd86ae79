"""Packets that routers can still forward: each VLL takes a share of a core at both ends.

The packet rates are measured: VPP on one core of a Ryzen 5950X with 64-byte frames, per encapsulation
(portal/core/transport.py), scaled to another CPU by its rate of plain IPv4 forwarding.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings

from portal.allocation.errors import RouterFull
from portal.core.transport import COST, Transport

# Plain IPv4 forwarding in millions of packets a second and core.
IPV4_MPPS_PER_CORE = {"Atom C3558": 5.01, "Xeon D1518": 10.20, "Ryzen 5950X": 22.28}
REFERENCE_CPU = "Ryzen 5950X"
# A router whose CPU nobody named, or measured, is taken for the slowest.
SLOWEST_CPU = min(IPV4_MPPS_PER_CORE, key=lambda cpu: IPV4_MPPS_PER_CORE[cpu])
# Preamble, start of frame and inter-frame gap, in bytes (IEEE 802.3).
WIRE_OVERHEAD = 20


@dataclass(frozen=True, slots=True)
class Load:
    """What one VLL end asks of its router, in each direction (bit/s)."""

    cir_bps: int
    transport: Transport


def frames_per_s(cir_bps: int, *, frame: int) -> float:
    """Frames of this size (bytes) a second at a rate (bit/s) on the wire, one direction."""
    return cir_bps / ((frame + WIRE_OVERHEAD) * 8)


def packets_per_core(transport: Transport, *, cpu: str) -> float:
    """Packets a second that one core carries."""
    speed = IPV4_MPPS_PER_CORE.get(cpu, IPV4_MPPS_PER_CORE[SLOWEST_CPU])
    return COST[transport].mpps_per_core * 1e6 * speed / IPV4_MPPS_PER_CORE[REFERENCE_CPU]


def share(load: Load, *, cpu: str, frame: int) -> float:
    """The part of a core that a VLL end takes when both directions are full."""
    return 2 * frames_per_s(load.cir_bps, frame=frame) / packets_per_core(load.transport, cpu=cpu)


def cores_used(loads: Iterable[Load], *, cpu: str) -> float:
    """Cores that these VLL ends take together."""
    return sum(share(load, cpu=cpu, frame=settings.LONGLINE_CAPACITY_FRAME) for load in loads)


def check_capacity(
    *, router: str, cpu: str, cores: int, booked: Iterable[Load], wanted: Load, field: str
) -> None:
    """Whether the router carries ``wanted`` besides what is booked on it. Raises RouterFull."""
    asked = cores_used([wanted], cpu=cpu)
    free = cores_bookable(cores) - cores_used(booked, cpu=cpu)
    if asked > free:
        raise RouterFull(
            field=field, router=router, requested_cores=round(asked, 3), free_cores=round(max(0.0, free), 3)
        )


def cores_bookable(cores: int) -> float:
    """Cores of a router that may be promised."""
    return cores * float(settings.LONGLINE_CORE_HEADROOM)
