"""What each transport costs a router, for people: as it was measured, and as admission reckons with it."""

from dataclasses import dataclass

from portal.allocation.calibrated_weights import packet_rate, weights_of
from portal.allocation.router_packet_capacity import BY_TABLE
from portal.core.encapsulations import Transport
from portal.inventory.calibration_document import Calibration
from portal.inventory.models import Router


@dataclass(frozen=True, slots=True)
class TransportCost:
    """``clocks`` per frame of 64 bytes, None: not measured; rates in millions of frames a second and core."""

    transport: Transport
    clocks: float | None
    mpps_per_core: float
    mpps_by_table: float


def calibration_of(router: Router) -> Calibration | None:
    """What the NOC took for this router, None: the shipped table counts."""
    return None if router.calibration is None else Calibration.of(router.calibration)


def transport_costs(router: Router) -> list[TransportCost]:
    """Of every transport, in their own order."""
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
