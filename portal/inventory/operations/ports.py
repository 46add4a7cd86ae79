"""Ports. Their removal is ``portal.vll.retirement``'s, which knows what ends on them."""

from datetime import datetime
from typing import Any

from django.db import transaction

from portal.accounts.models import Customer, User
from portal.inventory.errors import BookableBelowBooked, Retired
from portal.inventory.interface_uses import interface_taken
from portal.inventory.models import Port, Router
from portal.inventory.operations.rows import Refusals, in_use, row_change, row_create


@transaction.atomic
def port_create(*, router: Router, interface: str, user: User, now: datetime, **facts: Any) -> Port:
    """``facts``: description, kind, customer, speed_bps, bookable_bps (None: the speed), max_frame.

    Router and interface are for good. Raises InterfaceTaken, OutOfRange, NotAnInterfaceName, Retired.
    """
    # The lock keeps the router from being retired under the new port.
    locked = Router.objects.select_for_update(no_key=True).get(pk=router.pk)
    if locked.retired_at is not None:
        raise Retired(what="router", name=locked.name, field="router")
    _check_customer(facts.get("customer"))
    if facts.get("bookable_bps") is None:
        facts["bookable_bps"] = facts["speed_bps"]
    port = Port(router=locked, interface=interface, **facts)
    return row_create(port, kind="port", refusals=_refusals(port), user=user, now=now)


@transaction.atomic
def port_change(*, port: Port, user: User, now: datetime, **changes: Any) -> Port:
    """``changes``: description, kind, customer, speed_bps, bookable_bps, max_frame.

    Raises BookableBelowBooked, OutOfRange, Retired, and InUse where another customer's lines end on it.
    """
    locked: Port = (
        Port.objects.select_for_update(of=("self",)).select_related("router", "customer").get(pk=port.pk)
    )
    if locked.retired_at is not None:
        raise Retired(what="port", name=str(locked))
    if "customer" in changes and changes["customer"] != locked.customer and locked.booked_bps:
        # Bookings are the leases that lines and holds have on a port.
        holders = [str(holder) for holder in locked.bookings.values_list("holder", flat=True).distinct()]
        raise in_use("port", str(locked), holders)
    _check_customer(changes.get("customer"))
    for name, value in changes.items():
        if name == "bookable_bps" and value is None:
            changes[name] = changes.get("speed_bps", locked.speed_bps)
    return row_change(locked, changes, kind="port", refusals=_refusals(locked), user=user, now=now)


def _check_customer(customer: Customer | None) -> None:
    """The lock keeps the customer from being retired with a new port."""
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
