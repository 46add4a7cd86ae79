"""Sites: points of presence."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction

from portal.accounts.models import User
from portal.inventory.errors import CoordinateMissing, ValueTaken
from portal.inventory.models import Site
from portal.inventory.operations.row_writes import Refusals, in_use, row_change, row_create, row_remove


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
    refusals = _refusals(name, longitude_missing=longitude is None)
    return row_create(site, kind="site", refusals=refusals, user=user, now=now)


@transaction.atomic
def site_change(*, site: Site, user: User, now: datetime, **changes: Any) -> Site:
    """Change a site. Raises ValueTaken, OutOfRange, CoordinateMissing.

    ``changes``: name, latitude, longitude.
    """
    locked = Site.objects.select_for_update(no_key=True).get(pk=site.pk)
    longitude_missing = changes.get("longitude", locked.longitude) is None
    refusals = _refusals(changes.get("name", locked.name), longitude_missing=longitude_missing)
    return row_change(locked, changes, kind="site", refusals=refusals, user=user, now=now)


@transaction.atomic
def site_remove(*, site: Site, user: User, now: datetime) -> None:
    """Remove a site. Raises InUse if routers belong to it."""
    locked = Site.objects.select_for_update().get(pk=site.pk)
    if routers := list(locked.routers.order_by("name").values_list("name", flat=True)):
        raise in_use("site", locked.name, routers)
    row_remove(locked, kind="site", user=user, now=now)


def _refusals(name: str, *, longitude_missing: bool) -> Refusals:
    return {
        "inventory_site_name_key": lambda: ValueTaken(what="site", value=name, field="name"),
        "a_site_has_both_coordinates_or_none": lambda: CoordinateMissing(
            field="longitude" if longitude_missing else "latitude"
        ),
    }
