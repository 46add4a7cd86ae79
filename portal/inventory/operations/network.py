"""Operations of the NOC on sites, routers and backbone links."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

from django.db import transaction

from portal.accounts.models import User
from portal.inventory.errors import (
    CoordinateMissing,
    InterfaceTaken,
    LinkInService,
    LinkWithinRouter,
    Retired,
    ValueTaken,
)
from portal.inventory.interfaces import interface_taken, is_in_use
from portal.inventory.models import BackboneLink, Port, Router, Site
from portal.inventory.operations.row_writes import (
    Refusals,
    in_use,
    row_change,
    row_create,
    row_remove,
    writing,
)
from portal.inventory.rules import rules_of

_UNIQUE_OF_ROUTER = {
    "inventory_router_name_key": "name",
    "inventory_router_loopback4_key": "loopback4",
    "inventory_router_loopback6_key": "loopback6",
    "an_agent_serves_one_router": "agent_url",
}


@transaction.atomic
def site_create(
    *,
    name: str,
    latitude: Decimal | None = None,
    longitude: Decimal | None = None,
    user: User,
    now: datetime,
) -> Site:
    """Create a site. Raises ValueTaken, OutOfRange, CoordinateMissing."""
    site = Site(name=name, latitude=latitude, longitude=longitude)
    refusals = _refusals_of_site(name, longitude_missing=longitude is None)
    with writing(site, {}, user=user, now=now) as write:
        return row_create(write, site, refusals=refusals)


@transaction.atomic
def site_change(*, site: Site, user: User, now: datetime, **changes: Any) -> Site:
    """Change a site. Raises ValueTaken, OutOfRange, CoordinateMissing.

    ``changes``: name, latitude, longitude.
    """
    with writing(site, changes, user=user, now=now) as write:
        locked = Site.objects.select_for_update(no_key=True).get(pk=site.pk)
        longitude_missing = changes.get("longitude", locked.longitude) is None
        refusals = _refusals_of_site(changes.get("name", locked.name), longitude_missing=longitude_missing)
        return row_change(write, locked, changes, refusals=refusals)


@transaction.atomic
def site_remove(*, site: Site, user: User, now: datetime) -> None:
    """Remove a site. Raises InUse if routers belong to it."""
    locked = Site.objects.select_for_update().get(pk=site.pk)
    routers = list(locked.routers.order_by("name").values_list("name", flat=True))
    row_remove(locked, used_by=routers, user=user, now=now)


def _refusals_of_site(name: str, *, longitude_missing: bool) -> Refusals:
    return {
        "inventory_site_name_key": lambda: ValueTaken(what="site", value=name, field="name"),
        "a_site_has_both_coordinates_or_none": lambda: CoordinateMissing(
            field="longitude" if longitude_missing else "latitude"
        ),
    }


@transaction.atomic
def router_create(*, name: str, site: Site, user: User, now: datetime, **facts: Any) -> Router:
    """Create a router. ``facts``: loopback4, loopback6, underlay_table, agent_url, cpu, cores, line_test_pps.

    The name cannot be changed later, because certificates contain it. Raises ValueTaken, OutOfRange.
    """
    router = Router(name=name, site=site, **facts)
    with writing(router, facts, user=user, now=now) as write:
        return row_create(write, router, refusals=_refusals_of_router({"name": name, **facts}))


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
        if locked.retired_at is not None:
            raise Retired(what="router", name=locked.name)
        if locked.agent_url and changes.get("agent_url") == "":
            booked = Port.objects.filter(router=locked, booked_bps__gt=0).order_by("interface")
            if ports := [str(port) for port in booked.select_related("router")]:
                raise in_use(locked, ports)
        return row_change(write, locked, changes, refusals=_refusals_of_router(changes))


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


def _refusals_of_router(values: Mapping[str, Any]) -> Refusals:
    return {
        constraint: partial(ValueTaken, what="router", value=str(values.get(field)), field=field)
        for constraint, field in _UNIQUE_OF_ROUTER.items()
    }


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
        return row_change(write, locked, changes, refusals=_refusals_of_link(locked))


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
        if router.retired_at is not None:
            field = "a_router" if router == a_router else "z_router"
            raise Retired(what="router", name=router.name, field=field)


def _refusals_of_link(link: BackboneLink) -> Refusals:
    def taken() -> InterfaceTaken:
        a_is_taken = is_in_use(router=link.a_router, interface=link.a_interface, except_link=link.pk)
        if a_is_taken:
            return interface_taken(router=link.a_router, interface=link.a_interface, field="a_interface")
        return interface_taken(router=link.z_router, interface=link.z_interface, field="z_interface")

    return {"an_interface_has_one_use": taken}
