"""What a transport weighs on a router that was calibrated.

The figures are clocks of VPP's nodes on frames that are warm in the caches and meet no card, so they cannot
be multiplied by a rate. What a tunnel takes more than a cross-connect does hold for frames from a card: they
pass the same code. A frame in a tunnel therefore takes what a cross-connected one takes by the tables for the
router's CPU, and what the tunnel was measured to add.
"""

from fractions import Fraction

from portal.allocation.router_packet_capacity import BY_TABLE, Weights, directions, packets_per_core
from portal.core.encapsulations import TUNNELS, Transport
from portal.inventory.calibration_document import Calibration
from portal.inventory.models import Router


def weights_of(router: Router) -> Weights:
    """The weights that a router's ends are booked with."""
    if router.calibration is None:
        return BY_TABLE
    return calibrated_weights(Calibration.of(router.calibration), cpu=router.cpu)


def calibrated_weights(calibration: Calibration, *, cpu: str) -> Weights:
    """The weights by these figures; those of the table for what could not be measured.

    A tunnel is never cheaper than a cross-connect: where it was measured so, that was chance.
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
    """Packets a second that one core carries in this transport, by these weights."""
    cross_connected = packets_per_core(Transport.L2XC, cpu=cpu)
    return float(cross_connected * directions(transport) / weights[transport])
