"""Narrowing lists of the inventory, the same way for pages and API."""

from typing import Any, TypeVar

from django.db import models
from django.db.models import Q, QuerySet

from portal.accounts.models import Customer
from portal.inventory.models import BackboneLink, Port, Router, Site

Row = TypeVar("Row", bound=models.Model)

_PLACES: dict[type[models.Model], tuple[str, ...]] = {
    Site: ("name",),
    Router: ("name", "site__name"),
    Port: ("interface", "description", "router__name", "router__site__name"),
    BackboneLink: ("a_router__name", "a_interface", "z_router__name", "z_interface"),
    Customer: ("name",),
}


class RouterStatus(models.TextChoices):
    """The NOC's present use of a router."""

    IN_SERVICE = "in-service"
    MAINTENANCE = "maintenance"
    HELD = "held"


def found(rows: QuerySet[Row], text: str) -> QuerySet[Row]:
    """The rows with ``text`` in a name of theirs or of what they belong to; case does not matter."""
    anywhere = Q()
    for place in _PLACES[rows.model]:
        anywhere |= Q(**{f"{place}__icontains": text})
    return rows.filter(anywhere)


def routers_with_status(rows: QuerySet[Any], status: str) -> QuerySet[Any]:
    """The routers that are held or under maintenance, or neither."""
    match RouterStatus(status):
        case RouterStatus.HELD:
            return rows.filter(held_since__isnull=False)
        case RouterStatus.MAINTENANCE:
            return rows.filter(maintenance_since__isnull=False)
        case _:
            return rows.filter(held_since=None, maintenance_since=None)


def links_touching(rows: QuerySet[Any], router: str) -> QuerySet[Any]:
    """The links with an end on the router of that name."""
    return rows.filter(Q(a_router__name=router) | Q(z_router__name=router))
