"""Ports. ``portal.vll.guarded_inventory_deletion`` removes them, because it knows which lines end on them.

The bookable bandwidth of a port is a percentage of its speed, or a fixed rate. If neither is given at
creation, the operator's percentage applies (LONGLINE_OVERSUBSCRIPTION_PERCENT).
"""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from portal.accounts.models import Customer, User
from portal.inventory.errors import BookableBelowBooked, BookableTwice, Retired
from portal.inventory.field_limits import check_limits
from portal.inventory.interface_uses import interface_taken
from portal.inventory.models import Port, Router
from portal.inventory.operations.row_writes import Refusals, in_use, row_change, row_create


@transaction.atomic
def port_create(*, router: Router, interface: str, user: User, now: datetime, **facts: Any) -> Port:
    """Create a port. Its router and interface cannot be changed later.

    ``facts``: description, kind, customer, speed_bps, max_frame, and at most one of bookable_bps (bit/s) and
    oversubscription_percent. Raises InterfaceTaken, OutOfRange, NotAnInterfaceName, Retired, BookableTwice.
    """
    # Without the lock, the router could be retired while the port is created.
    locked = Router.objects.select_for_update(no_key=True).get(pk=router.pk)
    if locked.retired_at is not None:
        raise Retired(what="router", name=locked.name, field="router")
    _check_customer(facts.get("customer"))
    check_limits(facts)
    facts |= _bookable(facts["speed_bps"], facts.get("bookable_bps"), facts.get("oversubscription_percent"))
    port = Port(router=locked, interface=interface, **facts)
    return row_create(port, kind="port", refusals=_refusals(port), user=user, now=now)


@transaction.atomic
def port_change_unguarded(*, port: Port, user: User, now: datetime, **changes: Any) -> Port:
    """Change a port.

    ``changes``: description, kind, customer, speed_bps, bookable_bps, oversubscription_percent, max_frame.
    Raises BookableBelowBooked, BookableTwice, OutOfRange, Retired. Raises InUse if the customer changes while
    a line or a reservation has bandwidth on the port.
    """
    locked: Port = Port.objects.locked().select_related("router", "customer").get(pk=port.pk)
    if locked.retired_at is not None:
        raise Retired(what="port", name=str(locked))
    if "customer" in changes and changes["customer"] != locked.customer and locked.booked_bps:
        # The owners of bookings are lines, orders and reservations.
        owners = [str(owner) for owner in locked.bookings.values_list("owner", flat=True).distinct()]
        raise in_use("port", str(locked), owners)
    _check_customer(changes.get("customer"))
    check_limits(changes)
    speed_bps = changes.get("speed_bps", locked.speed_bps)
    if {"bookable_bps", "oversubscription_percent"} & set(changes):
        changes |= _bookable(speed_bps, changes.get("bookable_bps"), changes.get("oversubscription_percent"))
    elif locked.oversubscription_percent is not None:
        changes |= _bookable(speed_bps, None, locked.oversubscription_percent)
    return row_change(locked, changes, kind="port", refusals=_refusals(locked), user=user, now=now)


def _bookable(speed_bps: int, bookable_bps: int | None, percent: int | None) -> dict[str, int | None]:
    """Return both columns, computed from the one that is given. If none is given, use the operator's
    percentage. Raises BookableTwice.
    """
    if percent is None and bookable_bps is not None:
        return {"bookable_bps": bookable_bps, "oversubscription_percent": None}
    percent = settings.LONGLINE_OVERSUBSCRIPTION_PERCENT if percent is None else percent
    of_speed = speed_bps * percent // 100
    if bookable_bps is not None and bookable_bps != of_speed:
        raise BookableTwice(bookable_bps=bookable_bps, oversubscription_percent=percent, speed_bps=speed_bps)
    return {"bookable_bps": of_speed, "oversubscription_percent": percent}


def _check_customer(customer: Customer | None) -> None:
    """Lock the customer, so that it is not retired while it gets a port. Raises Retired."""
    if customer is None:
        return
    locked = Customer.objects.select_for_update(no_key=True).get(pk=customer.pk)
    if locked.retired_at is not None:
        raise Retired(what="customer", name=locked.name, field="customer")


def _refusals(port: Port) -> Refusals:
    return {
        "an_interface_has_one_use": lambda: interface_taken(
            router=port.router, interface=port.interface, field="interface"
        ),
        "port_bandwidth_is_never_overbooked": lambda: BookableBelowBooked(
            port=str(port), bookable_bps=port.bookable_bps, booked_bps=port.booked_bps
        ),
    }
