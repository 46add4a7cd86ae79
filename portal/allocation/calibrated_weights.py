"""The weights of transports on a calibrated router.

A calibration contains the CPU clocks that VPP's nodes use per frame. The measured frames were already in the
CPU's caches and did not come from a network card, so these figures do not give the packet rate of real
traffic. The difference between a tunnel and a cross-connect is also valid for frames from a card, because
they pass the same code. The cost of a frame in a tunnel is therefore the table value of a cross-connect for
the router's CPU plus the measured difference.
"""

from fractions import Fraction

from portal.allocation.router_packet_capacity import BY_TABLE, Weights, directions, packets_per_core
from portal.core.network.encapsulations import TUNNELS, Transport
from portal.inventory.calibration_document import Calibration
from portal.inventory.models import Router


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
