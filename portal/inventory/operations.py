"""Operations of the NOC on sites, routers, backbone links, customers and ports.

Each function runs one transaction; none uses the network. Writes that affect lines apply the rules of
``portal.inventory.rules``, which ``portal.vll`` registers.

The bookable bandwidth of a port is a percentage of its speed, or a fixed rate. If neither is given at
creation, the operator's percentage applies (LONGLINE_OVERSUBSCRIPTION_PERCENT).
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction

from portal.accounts.models import Customer, User
from portal.accounts.people import customer_lock, customer_reopen, customer_retire
from portal.events.announcements import announce
from portal.inventory.errors import (
    BookableBelowBooked,
    BookableTwice,
    CoordinateMissing,
    InterfaceTaken,
    LinkInService,
    LinkWithinRouter,
)
from portal.inventory.interfaces import interface_taken, is_in_use
from portal.inventory.kinds import check_limits, check_not_retired
from portal.inventory.models import BackboneLink, Port, Router, Site
from portal.inventory.row_writes import Refusals, in_use, row_change, row_create, row_remove, writing
from portal.inventory.rules import rules_of


@transaction.atomic
def site_create(*, user: User, now: datetime, **facts: Any) -> Site:
    """Create a site. Raises ValueTaken, OutOfRange, CoordinateMissing.

    ``facts``: name, latitude, longitude.
    """
    site = Site(**facts)
    with writing(site, facts, user=user, now=now) as write:
        return row_create(write, site, refusals=_refusals_of_site(site))


@transaction.atomic
def site_change(*, site: Site, user: User, now: datetime, **changes: Any) -> Site:
    """Change a site. Raises ValueTaken, OutOfRange, CoordinateMissing.

    ``changes``: name, latitude, longitude.
    """
    with writing(site, changes, user=user, now=now) as write:
        locked = Site.objects.select_for_update(no_key=True).get(pk=site.pk)
        return row_change(write, locked, refusals=_refusals_of_site(locked))


@transaction.atomic
def site_remove(*, site: Site, user: User, now: datetime) -> None:
    """Remove a site. Raises InUse if routers belong to it."""
    locked = Site.objects.select_for_update().get(pk=site.pk)
    routers = list(locked.routers.order_by("name").values_list("name", flat=True))
    row_remove(locked, used_by=routers, user=user, now=now)


def _refusals_of_site(site: Site) -> Refusals:
    def missing() -> CoordinateMissing:
        return CoordinateMissing(field="longitude" if site.longitude is None else "latitude")

    return {"a_site_has_both_coordinates_or_none": missing}


@transaction.atomic
def router_create(*, name: str, site: Site, user: User, now: datetime, **facts: Any) -> Router:
    """Create a router. ``facts``: loopback4, loopback6, underlay_table, agent_url, cpu, cores, line_test_pps.

    The name cannot be changed later, because certificates contain it. Raises ValueTaken, OutOfRange.
    """
    router = Router(name=name, site=site, **facts)
    with writing(router, facts, user=user, now=now) as write:
        return row_create(write, router)


@transaction.atomic
def router_change(
    *, router: Router, user: User, now: datetime, accept_affected: bool = False, **changes: Any
) -> Router:
    """Change a router.

    ``changes``: site, loopback4, loopback6, underlay_table, agent_url, cpu, cores, line_test_pps. Raises
    ValueTaken, OutOfRange, Retired. Raises InUse if the change removes the agent of a router with bookings on
    its ports. Raises LoopbackInUse, UnderlayTableInUse or CoresBelowBooked if lines need the present values;
    ``accept_affected`` permits fewer cores.
    """
    with writing(router, changes, user=user, now=now, accept_affected=accept_affected) as write:
        locked = Router.objects.select_for_update(no_key=True).get(pk=router.pk)
        check_not_retired(locked)
        if locked.agent_url and changes.get("agent_url") == "":
            booked = Port.objects.filter(router=locked, booked_bps__gt=0).order_by("interface")
            if ports := [str(port) for port in booked.select_related("router")]:
                raise in_use(locked, ports)
        return row_change(write, locked)


@transaction.atomic
def router_remove(*, router: Router, user: User, now: datetime) -> None:
    """Remove a router, or retire it if it has a history. A retired router's certificates are revoked.

    Raises InUse while the router has ports or links, and while it has not confirmed the removal of a line. A
    dead router needs no confirmation: the leases of its lines are released.
    """
    # Lock the router, then the rows of the rules, and the router's key last (ADR 76). An order that has
    # locked a line needs this key when it commits, because PostgreSQL then checks foreign keys. A lock of the
    # key before the lines could therefore cause a deadlock.
    locked = Router.objects.select_for_update(no_key=True).get(pk=router.pk)
    rules_of(Router).lock_for_removal(locked)
    locked = Router.objects.select_for_update().get(pk=router.pk)
    ports = Port.objects.filter(router=locked, retired_at__isnull=True).select_related("router")
    links = BackboneLink.objects.filter(a_router=locked) | BackboneLink.objects.filter(z_router=locked)
    users = [f"port {port}" for port in ports.order_by("interface")]
    users += [f"link {link}" for link in links.select_related("a_router", "z_router").order_by("pk")]

    def retire() -> None:
        Router.objects.filter(pk=router.pk).update(
            agent_url="", loopback4=None, loopback6=None, retired_at=now
        )
        router.certificates.filter(revoked_at__isnull=True).update(revoked_at=now)

    row_remove(locked, used_by=users, user=user, now=now, retire=retire)


@transaction.atomic
def link_create(
    *,
    a_router: Router,
    z_router: Router,
    user: User,
    now: datetime,
    accept_affected: bool = False,
    **facts: Any,
) -> BackboneLink:
    """Create a link. Raises LinesAffected if the underlay would no longer carry lines.

    ``facts``: a_/z_interface, a_/z_metric, a_/z_ip_mtu (bytes; None: unknown), ipv4, ipv6, in_service. Raises
    InterfaceTaken, LinkWithinRouter, OutOfRange, NotAnInterfaceName, Retired. LinesAffected is possible
    because lines use a shorter new link even if its MTU is too small for them.
    """
    link = BackboneLink(a_router=a_router, z_router=z_router, **facts)
    with writing(link, facts, user=user, now=now, accept_affected=accept_affected) as write:
        _check_routers(a_router, z_router)
        return row_create(write, link, refusals=_refusals_of_link(link))


@transaction.atomic
def link_change(
    *, link: BackboneLink, user: User, now: datetime, accept_affected: bool = False, **changes: Any
) -> BackboneLink:
    """Change any fact of the link. Raises the errors of ``link_create``."""
    with writing(link, changes, user=user, now=now, accept_affected=accept_affected) as write:
        locked = BackboneLink.objects.select_for_update(no_key=True).get(pk=link.pk)
        _check_routers(changes.get("a_router", locked.a_router), changes.get("z_router", locked.z_router))
        return row_change(write, locked, refusals=_refusals_of_link(locked))


@transaction.atomic
def link_remove(*, link: BackboneLink, user: User, now: datetime) -> None:
    """Remove a link. Raises LinkInService if it is in service, because paths use it."""
    locked = BackboneLink.objects.select_for_update().get(pk=link.pk)
    if locked.in_service:
        raise LinkInService(link=str(locked))
    row_remove(locked, used_by=(), user=user, now=now)


def _check_routers(a_router: Router, z_router: Router) -> None:
    if a_router == z_router:
        raise LinkWithinRouter(router=a_router.name)
    # Lock the routers in id order, so that neither is retired while the link is written.
    ids = {a_router.pk, z_router.pk}
    for router in Router.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk"):
        check_not_retired(router, field="a_router" if router == a_router else "z_router")


def _refusals_of_link(link: BackboneLink) -> Refusals:
    def taken() -> InterfaceTaken:
        a_is_taken = is_in_use(router=link.a_router, interface=link.a_interface, except_link=link.pk)
        if a_is_taken:
            return interface_taken(router=link.a_router, interface=link.a_interface, field="a_interface")
        return interface_taken(router=link.z_router, interface=link.z_interface, field="z_interface")

    return {"an_interface_has_one_use": taken}


@transaction.atomic
def customer_create(*, name: str, user: User, now: datetime, **facts: Any) -> Customer:
    """Create a customer. Raises ValueTaken, OutOfRange.

    ``facts``: approve_up_to_bps (bit/s; None: no order needs approval), cooling_off_s.
    """
    customer = Customer(name=name, created_at=now, **facts)
    with writing(customer, facts, user=user, now=now) as write:
        return row_create(write, customer)


@transaction.atomic
def customer_change(*, customer: Customer, user: User, now: datetime, **changes: Any) -> Customer:
    """Change a customer. Raises ValueTaken, OutOfRange, Retired.

    ``changes``: name, approve_up_to_bps, cooling_off_s.
    """
    with writing(customer, changes, user=user, now=now) as write:
        locked = Customer.objects.select_for_update(no_key=True).get(pk=customer.pk)
        check_not_retired(locked)
        return row_change(write, locked)


@transaction.atomic
def customer_remove(*, customer: Customer, user: User, now: datetime) -> None:
    """Remove a customer, or retire it if it has a history. Raises InUse if it has ports or unfinished lines.

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
    """Undo a retirement: the customer can get ports and order again. No effect on active customers."""
    locked = Customer.objects.select_for_update().get(pk=customer.pk)
    if locked.retired_at is None:
        return
    customer_reopen(customer=locked, now=now)
    data = {"id": customer.pk, "name": customer.name}
    announce("customer.reopened", now=now, actor=user.username, customer_id=customer.pk, data=data)


@transaction.atomic
def port_create(*, router: Router, interface: str, user: User, now: datetime, **facts: Any) -> Port:
    """Create a port. Its router and interface cannot be changed later.

    ``facts``: description, kind, customer, speed_bps, max_frame, and at most one of bookable_bps (bit/s) and
    oversubscription_percent. Raises InterfaceTaken, OutOfRange, NotAnInterfaceName, Retired, BookableTwice.
    """
    # Without the lock, the router could be retired while the port is created.
    locked = Router.objects.select_for_update(no_key=True).get(pk=router.pk)
    check_not_retired(locked, field="router")
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
        check_not_retired(locked)
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
        return row_change(write, locked, refusals=_refusals_of_port(locked))


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
    check_not_retired(locked, field="customer")


def _refusals_of_port(port: Port) -> Refusals:
    return {
        "an_interface_has_one_use": lambda: interface_taken(
            router=port.router, interface=port.interface, field="interface"
        ),
        "port_bandwidth_is_never_overbooked": lambda: BookableBelowBooked(
            port=str(port), bookable_bps=port.bookable_bps, booked_bps=port.booked_bps
        ),
    }


class Writes(NamedTuple):
    """The operations of a kind. ``change`` and ``remove`` have a parameter with the name of the kind."""

    create: Callable[..., Any]
    change: Callable[..., Any]
    remove: Callable[..., Any]


# By the name of the kind.
WRITES = {
    "site": Writes(site_create, site_change, site_remove),
    "router": Writes(router_create, router_change, router_remove),
    "link": Writes(link_create, link_change, link_remove),
    "customer": Writes(customer_create, customer_change, customer_remove),
    "port": Writes(port_create, port_change, port_remove),
}
