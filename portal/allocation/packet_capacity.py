"""The packets that a router forwards per second, the weight of each transport, and the cost of a line."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from django.conf import settings

from portal.core.network.encapsulations import COST, TUNNELS, Transport
from portal.inventory.calibration_document import Calibration
from portal.inventory.models import Router

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


def weights_of(router: Router) -> Weights:
    """Return the weights for bookings of the router's ends."""
    if router.calibration is None:
        return BY_TABLE
    return calibrated_weights(Calibration.of(router.calibration), cpu=router.cpu)


def calibrated_weights(calibration: Calibration, *, cpu: str) -> Weights:
    """Return the weights from a calibration; table weights for transports that could not be measured.

    A tunnel never counts as cheaper than a cross-connect. A lower measured cost is noise.
    """
    clocks = {transport: Fraction(str(each)) for transport, each in calibration.clocks.items()}
    frame = Fraction(str(calibration.clock_hz)) / Fraction(packets_per_core(Transport.L2XC, cpu=cpu))
    weights = dict(BY_TABLE)
    for tunnel in TUNNELS:
        if tunnel in clocks:
            more = max(Fraction(0), clocks[tunnel] - clocks[Transport.L2XC])
            weights[tunnel] = directions(tunnel) * (1 + more / frame)
    return weights


def packet_rate(transport: Transport, *, cpu: str, weights: Weights) -> float:
    """Return the packets per second that one core carries with this transport and these weights."""
    cross_connected = packets_per_core(Transport.L2XC, cpu=cpu)
    return float(cross_connected * directions(transport) / weights[transport])


@dataclass(frozen=True, slots=True)
class TransportCost:
    """The cost of one transport on a router.

    ``clocks``: the measured clocks per frame of 64 bytes; None if not measured. ``mpps_per_core``: the rate
    that admission uses, in millions of frames per second and core. ``mpps_by_table``: the same rate according
    to the shipped table.
    """

    transport: Transport
    clocks: float | None
    mpps_per_core: float
    mpps_by_table: float


def calibration_of(router: Router) -> Calibration | None:
    """Return the calibration that the NOC accepted for this router; None if the shipped table applies."""
    return None if router.calibration is None else Calibration.of(router.calibration)


def transport_costs(router: Router) -> list[TransportCost]:
    """Return the costs of all transports, in the order of the enumeration."""
    calibration, weights = calibration_of(router), weights_of(router)
    clocks = {} if calibration is None else calibration.clocks
    return [
        TransportCost(
            transport,
            clocks.get(transport),
            round(packet_rate(transport, cpu=router.cpu, weights=weights) / 1e6, 2),
            round(packet_rate(transport, cpu=router.cpu, weights=BY_TABLE) / 1e6, 2),
        )
        for transport in Transport
    ]
