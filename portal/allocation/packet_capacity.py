"""The packets that a router forwards per second, the weight of each transport, and the cost of a line.

The weights come from the document that `longline-agent calibrate -json` prints. Its format is described in
docs/reference/agent-requests.md.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fractions import Fraction
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from django.conf import settings
from msgspec import Meta, Struct

from portal.core.network.encapsulations import COST, TUNNELS, Transport
from portal.core.strict_json import (
    ForeignText,
    Invalid,
    Malformed,
    Natural53,
    Positive31,
    reader,
    require_unique,
)
from portal.inventory.errors import CalibrationOfAnother, CalibrationUnreadable
from portal.inventory.models import Router

# The limits of plausible values: clocks per frame, of one node or of about twenty nodes together; a time
# stamp counter of 1 MHz to 100 GHz.
_Clocks = Annotated[float, Meta(gt=0, le=1e6)]
_ClockHz = Annotated[float, Meta(ge=1e6, le=1e11)]


class _Node(Struct, frozen=True, forbid_unknown_fields=True):
    node: ForeignText
    clocks: _Clocks


class _Figure(Struct, frozen=True, forbid_unknown_fields=True):
    transport: Transport
    clocks: _Clocks
    least: _Clocks
    most: _Clocks
    nodes: Annotated[list[_Node], Meta(max_length=100)]


class _Missing(Struct, frozen=True, forbid_unknown_fields=True):
    transport: Transport
    message: ForeignText


class _Document(Struct, frozen=True, forbid_unknown_fields=True):
    schema: Literal[1]
    router: ForeignText
    measured_ms: Natural53
    vpp_version: ForeignText
    agent_version: ForeignText
    cpu: ForeignText
    clock_hz: _ClockHz
    rounds: Positive31
    frames: Positive31
    figures: Annotated[list[_Figure], Meta(min_length=1, max_length=100)]
    missing: Annotated[list[_Missing], Meta(max_length=100)]


_read = reader(_Document)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A calibration of a router.

    ``clocks``: the clocks per frame of 64 bytes, by transport. ``clock_hz``: clocks per second. A transport
    that could not be measured is missing. Local cross-connects are always present.
    """

    measured_at: datetime
    vpp_version: str
    cpu: str
    clock_hz: float
    rounds: int
    clocks: Mapping[Transport, float]

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Self:
        """Return the calibration that ``Router.calibration`` stores."""
        clocks = {Transport(name): clocks for name, clocks in kept["clocks"].items()}
        measured_at = datetime.fromisoformat(kept["measured_at"])
        return cls(**{**kept, "clocks": clocks, "measured_at": measured_at})

    def kept(self) -> dict[str, Any]:
        """Return the value to store in ``Router.calibration``, which ``Calibration.of`` reads."""
        clocks = {transport.value: clocks for transport, clocks in self.clocks.items()}
        return {**asdict(self), "measured_at": self.measured_at.isoformat(), "clocks": clocks}


def calibration_read(text: str, *, router: str) -> Calibration:
    """Parse a calibration of that router. Raises CalibrationUnreadable, CalibrationOfAnother."""
    try:
        document = _read(text.encode())
        require_unique(document.figures, "transport", at="/figures")
        measured_at = datetime.fromtimestamp(document.measured_ms / 1000, UTC)
    except (Malformed, Invalid, UnicodeEncodeError, ValueError, OverflowError) as error:
        raise CalibrationUnreadable(detail=str(error)) from error
    if document.router != router:
        raise CalibrationOfAnother(router=router, measured=str(document.router))
    clocks = {figure.transport: figure.clocks for figure in document.figures}
    if Transport.L2XC not in clocks:
        raise CalibrationUnreadable(detail="/figures: there is none of l2xc")
    return Calibration(
        measured_at=measured_at,
        vpp_version=str(document.vpp_version),
        cpu=str(document.cpu),
        clock_hz=document.clock_hz,
        rounds=document.rounds,
        clocks=clocks,
    )


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
