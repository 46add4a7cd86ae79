"""Routers.

``portal.vll.guarded_inventory_deletion`` removes routers, because it knows which lines end on them.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from portal.accounts.models import User
from portal.inventory.errors import Retired, ValueTaken
from portal.inventory.models import Port, Router, Site
from portal.inventory.operations.row_writes import Refusals, in_use, row_change, row_create

_UNIQUE = {
    "inventory_router_name_key": "name",
    "inventory_router_loopback4_key": "loopback4",
    "inventory_router_loopback6_key": "loopback6",
    "an_agent_serves_one_router": "agent_url",
}


def router_create(*, name: str, site: Site, user: User, now: datetime, **facts: Any) -> Router:
    """Create a router. ``facts``: loopback4, loopback6, underlay_table, agent_url, cpu, cores, line_test_pps.

    The name cannot be changed later, because certificates contain it. Raises ValueTaken, OutOfRange.
    """
    router = Router(name=name, site=site, **facts)
    refusals = _refusals({"name": name, **facts})
    return row_create(router, kind="router", refusals=refusals, user=user, now=now)


@transaction.atomic
def router_change_unguarded(*, router: Router, user: User, now: datetime, **changes: Any) -> Router:
    """Change a router.

    ``changes``: site, loopback4, loopback6, underlay_table, agent_url, cpu, cores, line_test_pps. Raises
    ValueTaken, OutOfRange, Retired. Raises InUse if the change removes the agent of a router with bookings on
    its ports.
    """
    locked = Router.objects.select_for_update(no_key=True).get(pk=router.pk)
    if locked.retired_at is not None:
        raise Retired(what="router", name=locked.name)
    if locked.agent_url and changes.get("agent_url") == "":
        booked = Port.objects.filter(router=locked, booked_bps__gt=0).order_by("interface")
        if ports := [str(port) for port in booked.select_related("router")]:
            raise in_use("router", locked.name, ports)
    return row_change(locked, changes, kind="router", refusals=_refusals(changes), user=user, now=now)


def _refusals(values: Mapping[str, Any]) -> Refusals:
    return {
        constraint: lambda field=field: ValueTaken(  # type: ignore[misc]
            what="router", value=str(values.get(field)), field=field
        )
        for constraint, field in _UNIQUE.items()
    }
