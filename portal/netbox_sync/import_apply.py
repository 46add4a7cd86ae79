"""Changes of inventory rows. They use the inventory's operations, with their rules, events and audit."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import transaction

from portal.accounts.models import User
from portal.core.errors import DomainError
from portal.core.stored_text import in_english
from portal.inventory import operations
from portal.netbox_sync.import_diff import REFERENCES, Change
from portal.netbox_sync.import_mapping import CUSTOMER, LINK, PORT, ROUTER, SITE, Finding
from portal.netbox_sync.local_inventory import MODELS
from portal.netbox_sync.models import NetboxObject

# The name of the user in events of scheduled syncs. There is no such account.
ACTOR = "NetBox"
_CHANGE: dict[str, Callable[..., Any]] = {
    SITE: lambda *, row, **more: operations.site_change(site=row, **more),
    CUSTOMER: lambda *, row, **more: operations.customer_change(customer=row, **more),
    ROUTER: lambda *, row, **more: operations.router_change(router=row, **more),
    PORT: lambda *, row, **more: operations.port_change(port=row, **more),
    LINK: lambda *, row, **more: operations.link_change(link=row, **more),
}
_CREATE: dict[str, Callable[..., Any]] = {
    SITE: operations.site_create,
    CUSTOMER: operations.customer_create,
    ROUTER: operations.router_create,
    PORT: operations.port_create,
    LINK: operations.link_create,
}


class Missing(Exception):
    """The row refers to another row that does not exist, because it could not be created."""


class Applier:
    """Makes changes one after another, each in its own transaction.

    Changes that were made before an interruption remain, so that the next sync makes only the rest.
    """

    def __init__(self, *, actor: str, now: datetime) -> None:
        self._user = User(username=actor or ACTOR)
        self._now = now
        self._rows = {
            (each.kind, each.netbox_id): each.row_id
            for each in NetboxObject.objects.only("kind", "netbox_id", "row_id").iterator(1000)
        }

    def apply(self, change: Change) -> Finding | None:
        """Make a change. Return None if the change was made, otherwise a finding with the reason."""
        try:
            with transaction.atomic():
                row_id = self._write(change)
                self._remember(change, row_id)
        except DomainError as error:
            with in_english():
                why = error.sentence
            return Finding("refused_here", change.name, {"what": change.kind, "why": why})
        except Missing as error:
            return Finding("depends", change.name, {"what": change.kind, "on": str(error)})
        self._rows[change.kind, change.id] = row_id
        return None

    def _write(self, change: Change) -> int:
        values = {name: self._ours(name, after) for name, (_, after) in change.fields.items()}
        common = {"user": self._user, "now": self._now}
        if change.row is None:
            made = _CREATE[change.kind](**self._place(change), **values, **common)
            return int(made.pk)
        if values:
            row = MODELS[change.kind].objects.get(pk=change.row)
            _CHANGE[change.kind](row=row, **values, **common)
        return change.row

    def _place(self, change: Change) -> dict[str, Any]:
        """Return those attributes of a new row that can never change later. ``change.fields`` does not
        contain them.
        """
        if change.kind == ROUTER:
            return {"name": change.place[0]}
        if change.kind == PORT:
            return {"router": self._ours("a_router", change.place[0]), "interface": change.place[1]}
        return {}

    def _ours(self, name: str, value: Any) -> Any:
        kind = REFERENCES.get(name)
        if kind is None or value is None:
            return value
        row = MODELS[kind].objects.filter(pk=self._rows.get((kind, value))).first()
        if row is None:
            raise Missing(f"{kind} {value}")
        return row

    def _remember(self, change: Change, row_id: int) -> None:
        # The row may have belonged to another NetBox object. This NetBox object may have had another row,
        # which no longer exists.
        NetboxObject.objects.filter(kind=change.kind, row_id=row_id).exclude(netbox_id=change.id).delete()
        NetboxObject.objects.update_or_create(
            kind=change.kind, netbox_id=change.id, defaults={"row_id": row_id, "taken": change.take}
        )
