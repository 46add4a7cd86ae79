"""Operations of the NOC on customers and their ports.

The bookable bandwidth of a port is a percentage of its speed, or a fixed rate. If neither is given at
creation, the operator's percentage applies (LONGLINE_OVERSUBSCRIPTION_PERCENT).
"""

from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction

from portal.accounts.models import Customer, User
from portal.accounts.team import customer_lock, customer_reopen, customer_retire
from portal.events.outbox import announce
from portal.inventory.errors import BookableBelowBooked, BookableTwice, Retired, ValueTaken
from portal.inventory.interfaces import interface_taken
from portal.inventory.kinds import check_limits
from portal.inventory.models import Port, Router
from portal.inventory.operations.row_writes import (
    Refusals,
    in_use,
    row_change,
    row_create,
    row_remove,
    writing,
)


@transaction.atomic
def customer_create(*, name: str, user: User, now: datetime, **facts: Any) -> Customer:
    """Create a customer. Raises ValueTaken, OutOfRange.

    ``facts``: approve_up_to_bps (bit/s; None: no order needs approval), cooling_off_s.
    """
    customer = Customer(name=name, created_at=now, **facts)
    with writing(customer, facts, user=user, now=now) as write:
        return row_create(write, customer, refusals=_refusals_of_customer(name))


@transaction.atomic
def customer_change(*, customer: Customer, user: User, now: datetime, **changes: Any) -> Customer:
    """Change a customer. Raises ValueTaken, OutOfRange, Retired.

    ``changes``: name, approve_up_to_bps, cooling_off_s.
    """
    with writing(customer, changes, user=user, now=now) as write:
        locked = Customer.objects.select_for_update(no_key=True).get(pk=customer.pk)
        if locked.retired_at is not None:
            raise Retired(what="customer", name=locked.name)
        refusals = _refusals_of_customer(changes.get("name", locked.name))
        return row_change(write, locked, changes, refusals=refusals)


@transaction.atomic
def customer_remove(*, customer: Customer, user: User, now: datetime) -> None:
    """Remove a customer, or retire it if it has a history. Raises InUse while it has ports or unfinished
    lines.

    Removing a retired customer again changes nothing.
    """
    locked = customer_lock(customer)
    if locked.retired_at is not None:
        return
    ports = [f"port {port}" for port in Port.objects.filter(customer=locked).select_related("router")]
    retire = partial(customer_retire, customer=customer, now=now)
    row_remove(locked, used_by=ports, user=user, now=now, retire=retire)


@transaction.atomic
def customer_return(*, customer: Customer, user: User, now: datetime) -> None:
    """Undo a retirement, so that the customer can again get ports and place orders. Does nothing for an
    active customer.
    """
    locked = Customer.objects.select_for_update().get(pk=customer.pk)
    if locked.retired_at is None:
        return
    customer_reopen(customer=locked, now=now)
    data = {"id": customer.pk, "name": customer.name}
    announce("customer.reopened", now=now, actor=user.username, customer_id=customer.pk, data=data)


def _refusals_of_customer(name: str) -> Refusals:
    return {"accounts_customer_name_key": lambda: ValueTaken(what="customer", value=name, field="name")}


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
    with writing(port, facts, user=user, now=now) as write:
        return row_create(write, port, refusals=_refusals_of_port(port))


@transaction.atomic
def port_change(
    *, port: Port, user: User, now: datetime, accept_affected: bool = False, **changes: Any
) -> Port:
    """Change a port.

    ``changes``: description, kind, customer, speed_bps, bookable_bps, oversubscription_percent, max_frame.
    Raises BookableBelowBooked, BookableTwice, OutOfRange, Retired. Raises InUse if the customer changes while
    a line or a reservation has bandwidth on the port. Raises LinesAffected if lines on the port send larger
    frames than the port accepts after the change.
    """
    with writing(port, changes, user=user, now=now, accept_affected=accept_affected) as write:
        locked: Port = Port.objects.locked().select_related("router", "customer").get(pk=port.pk)
        if locked.retired_at is not None:
            raise Retired(what="port", name=str(locked))
        if "customer" in changes and changes["customer"] != locked.customer and locked.booked_bps:
            # The owners of bookings are lines, orders and reservations.
            raise in_use(
                locked, [str(each) for each in locked.bookings.values_list("owner", flat=True).distinct()]
            )
        _check_customer(changes.get("customer"))
        check_limits(changes)
        speed_bps = changes.get("speed_bps", locked.speed_bps)
        rate, percent = changes.get("bookable_bps"), changes.get("oversubscription_percent")
        if {"bookable_bps", "oversubscription_percent"} & set(changes):
            changes |= _bookable(speed_bps, rate, percent)
        elif locked.oversubscription_percent is not None:
            changes |= _bookable(speed_bps, None, locked.oversubscription_percent)
        return row_change(write, locked, changes, refusals=_refusals_of_port(locked))


@transaction.atomic
def port_remove(*, port: Port, user: User, now: datetime) -> None:
    """Remove a port, or retire it if it has a history.

    Raises InUse while a line or a reservation needs the port. Orders lock their ports, so no order can start
    to use the port meanwhile.
    """
    locked = Port.objects.select_for_update(of=("self",)).select_related("router").get(pk=port.pk)
    retire = partial(Port.objects.filter(pk=port.pk).update, customer=None, retired_at=now)
    row_remove(locked, used_by=(), user=user, now=now, retire=retire)


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


def _refusals_of_port(port: Port) -> Refusals:
    return {
        "an_interface_has_one_use": lambda: interface_taken(
            router=port.router, interface=port.interface, field="interface"
        ),
        "port_bandwidth_is_never_overbooked": lambda: BookableBelowBooked(
            port=str(port), bookable_bps=port.bookable_bps, booked_bps=port.booked_bps
        ),
    }
