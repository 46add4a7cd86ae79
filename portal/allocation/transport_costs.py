"""The cost of each transport for a router, for display: as measured and as admission uses it."""

from dataclasses import dataclass

from portal.allocation.calibrated_weights import packet_rate, weights_of
from portal.allocation.router_packet_capacity import BY_TABLE
from portal.core.network.encapsulations import Transport
from portal.inventory.calibration_document import Calibration
from portal.inventory.models import Router


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
