"""Admission by packet rate: each VLL takes a share of the cores at both ends.

The packet rates were measured with VPP on one core of a Ryzen 5950X with 64-byte frames, per encapsulation
(portal/core/network/encapsulations.py). For another CPU they are scaled by its rate of plain IPv4 forwarding.

Bookings use a *load*. The load of an end is the rate (bit/s) of local cross-connects that would use as much
of the router's cores as this end does. Local cross-connects are the cheapest transport. The load is a whole
number that depends neither on the router's cores nor on the policy. Sums therefore stay exact and valid when
the router's cores or the operator's policy change. A calibrated router has its own weights
(portal/allocation/calibrated_weights.py).
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

from django.conf import settings

from portal.core.network.encapsulations import COST, TUNNELS, Transport

# Plain IPv4 forwarding in millions of packets per second and core.
IPV4_MPPS_PER_CORE = {"Atom C3558": 5.01, "Xeon D1518": 10.20, "Ryzen 5950X": 22.28}
REFERENCE_CPU = "Ryzen 5950X"
# A router without a declared or measured CPU counts as the slowest CPU.
SLOWEST_CPU = min(IPV4_MPPS_PER_CORE, key=lambda cpu: IPV4_MPPS_PER_CORE[cpu])
# Preamble, start of frame and inter-frame gap, in bytes (IEEE 802.3).
WIRE_OVERHEAD = 20

_CHEAPEST = Transport.L2XC

# By transport: the load of one end for each bit/s of its line, with both directions full.
Weights = Mapping[Transport, Fraction]


def directions(transport: Transport) -> int:
    """Return the number of directions of traffic that count at one end.

    A tunnel's end handles both directions. A local cross-connect has both ends on one router, which handles
    each frame once. With this transport, each end counts for the direction of its incoming frames.
    """
    return 1 if transport is Transport.L2XC else 2


def _weight_by_table(transport: Transport) -> Fraction:
    return (
        directions(transport) * _exact(COST[_CHEAPEST].mpps_per_core) / _exact(COST[transport].mpps_per_core)
    )


def _exact(value: float) -> Fraction:
    """Return the decimal exactly as written in the table of measurements."""
    return Fraction(str(value))


BY_TABLE: Weights = MappingProxyType({transport: _weight_by_table(transport) for transport in Transport})


def dearest(*, within_router: bool, weights: Weights = BY_TABLE) -> Transport:
    """Return the most expensive transport that could join two ports."""
    return Transport.L2XC if within_router else max(TUNNELS, key=lambda tunnel: weights[tunnel])


def end_load(cir_bps: int, transport: Transport, weights: Weights = BY_TABLE) -> int:
    """Return the load of one end of a VLL on its router with both directions full."""
    return math.ceil(cir_bps * weights[transport])


def largest_cir(load: int, transport: Transport, weights: Weights = BY_TABLE) -> int:
    """Return the largest rate (bit/s) that keeps the load of one end within ``load``."""
    return max(0, math.floor(load / weights[transport]))


def bookable_load(*, cpu: str, cores: int) -> int:
    """Return the load that may be booked on this number of cores.

    LONGLINE_CORE_HEADROOM is the part of the cores that may be booked. LONGLINE_CAPACITY_FRAME is the assumed
    size of all frames.
    """
    return math.floor(cores * float(settings.LONGLINE_CORE_HEADROOM) * load_per_core(cpu))


def load_per_core(cpu: str) -> float:
    """Return the load that one core carries when all frames have the policy's size."""
    bits: int = (settings.LONGLINE_CAPACITY_FRAME + WIRE_OVERHEAD) * 8
    return packets_per_core(_CHEAPEST, cpu=cpu) * bits


def packets_per_core(transport: Transport, *, cpu: str) -> float:
    """Return the packets per second that one core carries with this transport, by the shipped table."""
    speed = IPV4_MPPS_PER_CORE.get(cpu, IPV4_MPPS_PER_CORE[SLOWEST_CPU])
    return COST[transport].mpps_per_core * 1e6 * speed / IPV4_MPPS_PER_CORE[REFERENCE_CPU]
