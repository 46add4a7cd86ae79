"""Backbone links."""

from datetime import datetime
from typing import Any

from django.db import transaction

from portal.accounts.models import User
from portal.inventory.errors import InterfaceTaken, LinkInService, LinkWithinRouter, Retired
from portal.inventory.interface_uses import interface_taken, is_in_use
from portal.inventory.models import BackboneLink, Router
from portal.inventory.operations.row_writes import Refusals, row_change, row_create, row_remove


@transaction.atomic
def link_create_unguarded(
    *, a_router: Router, z_router: Router, user: User, now: datetime, **facts: Any
) -> BackboneLink:
    """Create a link.

    ``facts``: a_/z_interface, a_/z_metric, a_/z_ip_mtu (bytes; None: unknown), ipv4, ipv6, in_service. Raises
    InterfaceTaken, LinkWithinRouter, OutOfRange, NotAnInterfaceName, Retired.
    """
    _check_routers(a_router, z_router)
    link = BackboneLink(a_router=a_router, z_router=z_router, **facts)
    return row_create(link, kind="link", refusals=_refusals(link), user=user, now=now)


@transaction.atomic
def link_change_unguarded(*, link: BackboneLink, user: User, now: datetime, **changes: Any) -> BackboneLink:
    """Change any fact of the link. Raises the errors of ``link_create_unguarded``."""
    locked = BackboneLink.objects.select_for_update(no_key=True).get(pk=link.pk)
    _check_routers(changes.get("a_router", locked.a_router), changes.get("z_router", locked.z_router))
    return row_change(locked, changes, kind="link", refusals=_refusals(locked), user=user, now=now)


@transaction.atomic
def link_remove(*, link: BackboneLink, user: User, now: datetime) -> None:
    """Remove a link. Raises LinkInService if it is in service, because paths use it."""
    locked = BackboneLink.objects.select_for_update().get(pk=link.pk)
    if locked.in_service:
        raise LinkInService(link=str(locked))
    row_remove(locked, kind="link", user=user, now=now)


def _check_routers(a_router: Router, z_router: Router) -> None:
    if a_router == z_router:
        raise LinkWithinRouter(router=a_router.name)
    # Lock the routers in id order, so that neither is retired while the link is written.
    ids = {a_router.pk, z_router.pk}
    for router in Router.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk"):
        if router.retired_at is not None:
            field = "a_router" if router == a_router else "z_router"
            raise Retired(what="router", name=router.name, field=field)


def _refusals(link: BackboneLink) -> Refusals:
    def taken() -> InterfaceTaken:
        a_is_taken = is_in_use(router=link.a_router, interface=link.a_interface, except_link=link.pk)
        if a_is_taken:
            return interface_taken(router=link.a_router, interface=link.a_interface, field="a_interface")
        return interface_taken(router=link.z_router, interface=link.z_interface, field="z_interface")

    return {"an_interface_has_one_use": taken}
