"""Filters of the inventory's lists, shared by pages and API."""

from typing import Any, TypeVar

from django.db import models
from django.db.models import Q, QuerySet

from portal.inventory.kinds import KIND_OF
from portal.inventory.models import Port

Row = TypeVar("Row", bound=models.Model)


class RouterStatus(models.TextChoices):
    """The operational status of a router, set by the NOC."""

    IN_SERVICE = "in-service"
    MAINTENANCE = "maintenance"
    LOCKED = "held"
    FROZEN = "frozen"


def found(rows: QuerySet[Row], text: str) -> QuerySet[Row]:
    """Return rows with ``text`` in a name of the row or of its parents; case does not matter."""
    anywhere = Q()
    for place in KIND_OF[rows.model].search:
        anywhere |= Q(**{f"{place}__icontains": text})
    if rows.model is Port:
        anywhere |= port_as_shown(text)
    return rows.filter(anywhere)


def port_as_shown(text: str) -> Q:
    """Match a port by the form in which pages show ports: ``rhino:host-cust1``.

    Before the colon, the text has the name of the router or the last part of it. After the colon, it has the
    name of the interface or the first part of it. A text without a colon matches nothing.
    """
    router, colon, interface = (part.strip() for part in text.partition(":"))
    if not colon or not (router or interface):
        return Q(pk__in=())
    return Q(router__name__iendswith=router, interface__istartswith=interface)


def routers_with_status(rows: QuerySet[Any], status: str) -> QuerySet[Any]:
    """Return the routers that have ``status``. A router is ``in-service`` if no other status applies."""
    match RouterStatus(status):
        case RouterStatus.LOCKED:
            return rows.filter(locked_since__isnull=False)
        case RouterStatus.FROZEN:
            return rows.filter(frozen_since__isnull=False)
        case RouterStatus.MAINTENANCE:
            return rows.filter(maintenance_since__isnull=False)
        case _:
            return rows.filter(locked_since=None, frozen_since=None, maintenance_since=None)


def links_touching(rows: QuerySet[Any], router: str) -> QuerySet[Any]:
    """Return the links with an end on the router of that name."""
    return rows.filter(Q(a_router__name=router) | Q(z_router__name=router))
