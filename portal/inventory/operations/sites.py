"""Sites: points of presence."""

from datetime import datetime
from typing import Any

from django.db import transaction

from portal.accounts.models import User
from portal.inventory.errors import ValueTaken
from portal.inventory.models import Site
from portal.inventory.operations.row_writes import Refusals, in_use, row_change, row_create, row_remove


def site_create(*, name: str, user: User, now: datetime) -> Site:
    """Raises ValueTaken."""
    return row_create(Site(name=name), kind="site", refusals=_refusals(name), user=user, now=now)


@transaction.atomic
def site_change(*, site: Site, user: User, now: datetime, **changes: Any) -> Site:
    """``changes``: name. Raises ValueTaken."""
    locked = Site.objects.select_for_update().get(pk=site.pk)
    refusals = _refusals(changes.get("name", locked.name))
    return row_change(locked, changes, kind="site", refusals=refusals, user=user, now=now)


@transaction.atomic
def site_remove(*, site: Site, user: User, now: datetime) -> None:
    """Raises InUse while routers stand there."""
    locked = Site.objects.select_for_update().get(pk=site.pk)
    if routers := list(locked.routers.order_by("name").values_list("name", flat=True)):
        raise in_use("site", locked.name, routers)
    row_remove(locked, kind="site", user=user, now=now)


def _refusals(name: str) -> Refusals:
    return {"inventory_site_name_key": lambda: ValueTaken(what="site", value=name, field="name")}
