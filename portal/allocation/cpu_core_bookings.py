"""Bookings of routers' cores. A booking first adds to the router's sum and then checks the sum.

The row of the sum stays locked until the transaction ends, so only one of many competing orders gets the last
capacity. Routers are locked in id order and after all ports, to avoid deadlocks.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from math import ceil
from uuid import UUID

from portal.allocation.bookings import Bookings
from portal.allocation.errors import CoresBelowBooked, RouterFull
from portal.allocation.models import CoreBooking
from portal.allocation.packet_capacity import (
    Weights,
    bookable_load,
    end_load,
    largest_cir,
    load_per_core,
    weights_of,
)
from portal.core.db.statements import rows_of
from portal.core.network.encapsulations import Transport
from portal.inventory.models import Router

_ADD = """
INSERT INTO allocation_routerload AS sums (router_id, booked) VALUES (%(router)s, greatest(0, %(load)s))
ON CONFLICT (router_id) DO UPDATE SET booked = sums.booked + %(load)s
RETURNING booked
"""
# The bookings of an owner, and the new sum of each router, in id order.
_BOOK = """
WITH wanted AS (
    SELECT *
    FROM unnest(%(routers)s::bigint[], %(sides)s::text[], %(loads)s::bigint[]) AS r (router, side, load)
), bookings AS (
    INSERT INTO allocation_corebooking (router_id, holder, side, load)
    SELECT router, %(owner)s, side, load FROM wanted
)
INSERT INTO allocation_routerload AS sums (router_id, booked)
SELECT router, sum(load) FROM wanted GROUP BY router ORDER BY router
ON CONFLICT (router_id) DO UPDATE SET booked = sums.booked + EXCLUDED.booked
RETURNING router_id, booked
"""
_BOOKED = "SELECT router_id, booked FROM allocation_routerload WHERE router_id = ANY(%(routers)s)"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndLoad:
    """The load of one end on a router's cores (see ``portal.allocation.packet_capacity``)."""

    router: Router
    load: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterCapacity:
    """The capacity of a router for one more line, in cores of this router.

    ``free_bps``: the largest rate (bit/s) that would fit with the line's transport.
    """

    router: str
    bookable_cores: float
    booked_cores: float
    free_cores: float
    free_bps: int


def cores_book(
    *, ends: Mapping[str, EndLoad], transport: Transport, owner: UUID, own: Collection[UUID] = ()
) -> None:
    """Book the load of ``ends``, by side, minus the load that the owners in ``own`` have booked there.

    Raises ``RouterFull``. Call it after an order's other leases, because the routers' sums stay locked.
    """
    missing = _missing(ends, own)
    wanted = [(ends[side].router.pk, side, load) for side, load in missing.items() if load]
    if not wanted:
        return
    routers, sides, loads = map(list, zip(*wanted, strict=True))
    booked = dict(rows_of(_BOOK, {"owner": owner, "routers": routers, "sides": sides, "loads": loads}))
    for router, (side, load) in _by_router(ends, missing).items():
        before = booked[router.pk] - load
        if load > bookable_of(router) - before:
            raise _full(router, side, load, before, transport, ends)


def cores_lock(routers: Collection[int]) -> None:
    """Lock the sums of these routers, for a caller that books cores of these routers more than once."""
    for router in sorted(routers):
        _add(router, 0)


def cores_refusals(
    *, ends: Mapping[str, EndLoad], transport: Transport, own: Collection[UUID] = ()
) -> list[RouterFull]:
    """Return the errors that a booking would raise, for each router. Writes nothing."""
    missing = _by_router(ends, _missing(ends, own))
    booked = booked_on(missing)
    return [
        _full(router, side, load, booked[router.pk], transport, ends)
        for router, (side, load) in missing.items()
        if load > bookable_of(router) - booked[router.pk]
    ]


def cores_check(*, ends: Mapping[str, EndLoad], transport: Transport) -> None:
    """Check that the routers can still carry all booked load, including these ends. Raises ``RouterFull``.

    A router may now have fewer cores, or a smaller bookable share of them, than at the time of booking.
    """
    wanted = _by_router(ends, {side: end.load for side, end in ends.items()})
    booked = booked_on(wanted)
    for router, (side, load) in wanted.items():
        if booked[router.pk] > bookable_of(router):
            raise _full(router, side, load, booked[router.pk] - load, transport, ends)


def cores_suffice(router: Router) -> None:
    """Check that a changed router still has the cores that are booked on it. Raises CoresBelowBooked."""
    booked, bookable = booked_on([router])[router.pk], bookable_of(router)
    if booked > bookable:
        raise CoresBelowBooked(
            router=router.name,
            booked_cores=cores_of(router, booked),
            bookable_cores=cores_of(router, bookable),
        )


def cores_revalue(
    *, router: Router, lines: Mapping[UUID, tuple[Transport, int]], before: Weights, after: Weights
) -> None:
    """Recalculate the bookings of these lines on a router with the weights ``after`` instead of ``before``.

    ``lines``: id -> (transport, rate in bit/s). The caller has locked the lines. Additional bookings of an
    order or a reservation keep the old weights. These bookings end within minutes. Their settlement uses the
    weights that apply then.
    """
    changed, more = [], 0
    for booking in CoreBooking.objects.filter(router=router, owner__in=lines).order_by("owner", "side"):
        transport, cir_bps = lines[booking.owner]
        if booking.load == end_load(cir_bps, transport, before):
            load = end_load(cir_bps, transport, after)
        else:  # a change of the line is under way
            load = ceil(booking.load * after[transport] / before[transport])
        if load != booking.load:
            more += load - booking.load
            booking.load = load
            changed.append(booking)
    CoreBooking.objects.bulk_update(changed, ["load"], batch_size=1000)
    if changed:
        _add(router.pk, more)


def bookable_of(router: Router) -> int:
    """Return the bookable load of a router."""
    return bookable_load(cpu=router.cpu, cores=router.forwarding_cores)


def booked_on(routers: Collection[Router]) -> dict[int, int]:
    """Return the booked load of these routers, by id."""
    ids = [router.pk for router in routers]
    sums: dict[int, int] = dict(rows_of(_BOOKED, {"routers": ids}))
    return {pk: sums.get(pk, 0) for pk in ids}


def router_capacities(*, ends: Mapping[str, EndLoad], transport: Transport) -> list[RouterCapacity]:
    """Return the free capacity of the routers of these ends for a line with this transport, in id order."""
    routers = sorted({end.router for end in ends.values()}, key=lambda router: router.pk)
    booked = booked_on(routers)
    return [_capacity(router, booked[router.pk], transport, ends) for router in routers]


def _missing(ends: Mapping[str, EndLoad], own: Collection[UUID]) -> dict[str, int]:
    """Return, by side, the load that ``own`` has not booked on the end's router yet; 0 if it booked more."""
    own_loads: dict[tuple[str, int], int] = defaultdict(int)
    if own:
        for side, router, load in CoreBooking.objects.filter(owner__in=own).values_list(
            "side", "router_id", "load"
        ):
            own_loads[side, router] += load
    return {side: max(0, end.load - own_loads[side, end.router.pk]) for side, end in ends.items()}


def _by_router(ends: Mapping[str, EndLoad], missing: Mapping[str, int]) -> dict[Router, tuple[str, int]]:
    """Return, in id order, the routers with missing load: the first side that lacks load, and the sum that is
    missing.
    """
    found: dict[Router, tuple[str, int]] = {}
    for side in sorted(ends, key=lambda side: (ends[side].router.pk, side)):
        if missing[side]:
            first, load = found.get(ends[side].router, (side, 0))
            found[ends[side].router] = first, load + missing[side]
    return found


def _add(router: int, load: int) -> int:
    """Add to the router's sum and lock it. Return the new sum."""
    return int(rows_of(_ADD, {"router": router, "load": load})[0][0])


CORES = Bookings(model=CoreBooking, place="router_id", amount="load", router="router_id", add=_add)


def _full(
    router: Router,
    side: str,
    load: int,
    booked: int,
    transport: Transport,
    ends: Mapping[str, EndLoad],
) -> RouterFull:
    """Return the error for a load that does not fit, with figures for the whole line.

    ``load``: the part of the line's load that is not booked yet. ``booked``: the router's sum without it.
    """
    requested = sum(end.load for end in ends.values() if end.router == router)
    return RouterFull(
        field=f"{side}_end.port",
        transport=transport.value,
        requested_cores=cores_of(router, requested),
        **asdict(_capacity(router, booked - (requested - load), transport, ends)),
    )


def _capacity(
    router: Router, booked: int, transport: Transport, ends: Mapping[str, EndLoad]
) -> RouterCapacity:
    bookable = bookable_of(router)
    free = max(0, bookable - booked)
    ends_here = sum(end.router == router for end in ends.values())
    return RouterCapacity(
        router=router.name,
        bookable_cores=cores_of(router, bookable),
        booked_cores=cores_of(router, booked),
        free_cores=cores_of(router, free),
        free_bps=largest_cir(free // ends_here, transport, weights_of(router)),
    )


def cores_of(router: Router, load: int) -> float:
    """Return the cores of this router that a load takes, rounded to a thousandth."""
    return round(load / load_per_core(router.cpu), 3)


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
