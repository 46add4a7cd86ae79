"""The booked share of routers' cores, for callers that read many routers."""

from collections.abc import Collection
from dataclasses import dataclass

from portal.allocation.cpu_core_bookings import bookable_of, booked_on, cores_of
from portal.inventory.models import Router


@dataclass(frozen=True, slots=True)
class CoreUse:
    """The use of a router's cores. Figures in cores of the router, rounded to a thousandth.

    ``part``: booked / bookable; above 1 after a loss of cores.
    """

    booked_cores: float
    bookable_cores: float
    part: float

    @property
    def percent(self) -> int:
        return round(self.part * 100)


def core_use_of(routers: Collection[Router]) -> dict[int, CoreUse]:
    """Return the use of cores by router id, in one statement.

    Read the routers with ``select_related("observed")``.
    """
    booked = booked_on(routers)
    return {router.pk: _use(router, booked[router.pk]) for router in routers}


def _use(router: Router, booked: int) -> CoreUse:
    bookable = bookable_of(router)
    return CoreUse(
        booked_cores=cores_of(router, booked),
        bookable_cores=cores_of(router, bookable),
        part=booked / bookable if bookable else float(booked > 0),
    )
