"""Changes of inventory rows that an import from NetBox makes.

They use the inventory's operations, with their rules, events and audit. ``local_inventory`` returns the rows
in the form that is compared with NetBox's inventory.
"""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from portal.accounts.models import Customer, User
from portal.core.errors import DomainError
from portal.core.stored_text import in_english
from portal.inventory.models import BackboneLink, Port, Router, Site
from portal.inventory.operations import WRITES
from portal.netbox_sync.import_diff import REFERENCES, Change, LocalRow
from portal.netbox_sync.import_mapping import CUSTOMER, LINK, PORT, ROUTER, SITE, Finding, sides_place
from portal.netbox_sync.models import NetboxObject

_AT_ONCE = 1000
MODELS: dict[str, Any] = {SITE: Site, CUSTOMER: Customer, ROUTER: Router, PORT: Port, LINK: BackboneLink}


def local_inventory() -> dict[str, list[LocalRow]]:
    """Return all rows of the portal's inventory, by kind."""
    known: dict[str, dict[int, NetboxObject]] = {kind: {} for kind in MODELS}
    for each in NetboxObject.objects.all().iterator(_AT_ONCE):
        known[each.kind][each.row_id] = each

    def local_row(kind: str, row: Any, place: tuple[Any, ...], fields: dict[str, Any]) -> LocalRow:
        as_object = known[kind].get(row.pk)
        return LocalRow(
            kind=kind,
            row=row.pk,
            name=str(row),
            place=place,
            fields=fields,
            id=as_object.netbox_id if as_object else None,
            taken=as_object.taken if as_object else {},
            retired=getattr(row, "retired_at", None) is not None,
        )

    def named(kind: str, row_id: int | None) -> int | str | None:
        if row_id is None:
            return None
        as_object = known[kind].get(row_id)
        return as_object.netbox_id if as_object else f"row {row_id}"

    return {
        SITE: [local_row(SITE, row, (row.name,), {"name": row.name}) for row in _all(Site.objects.all())],
        CUSTOMER: [
            local_row(CUSTOMER, row, (row.name,), {"name": row.name}) for row in _all(Customer.objects.all())
        ],
        ROUTER: [
            local_row(
                ROUTER,
                row,
                (row.name,),
                {
                    "site": named(SITE, row.site_id),
                    "loopback4": row.loopback4,
                    "loopback6": row.loopback6,
                },
            )
            for row in _all(Router.objects.all())
        ],
        PORT: [
            local_row(
                PORT,
                row,
                (named(ROUTER, row.router_id), row.interface),
                {
                    "kind": row.kind,
                    "description": row.description,
                    "customer": named(CUSTOMER, row.customer_id),
                    "speed_bps": row.speed_bps,
                    "max_frame": row.max_frame,
                },
            )
            for row in _all(Port.objects.select_related("router"))
        ],
        LINK: [
            local_row(LINK, row, _sides(row, named), _link(row, named))
            for row in _all(BackboneLink.objects.select_related("a_router", "z_router"))
        ],
    }


def _all(rows: "QuerySet[Any]") -> Any:
    return rows.order_by("pk").iterator(_AT_ONCE)


def _sides(link: BackboneLink, named: Any) -> tuple[Any, ...]:
    return sides_place(
        (named(ROUTER, link.a_router_id), link.a_interface),
        (named(ROUTER, link.z_router_id), link.z_interface),
    )


def _link(link: BackboneLink, named: Any) -> dict[str, Any]:
    return {
        "a_router": named(ROUTER, link.a_router_id),
        "a_interface": link.a_interface,
        "a_ip_mtu": link.a_ip_mtu,
        "z_router": named(ROUTER, link.z_router_id),
        "z_interface": link.z_interface,
        "z_ip_mtu": link.z_ip_mtu,
    }


# The name of the user in events of scheduled syncs. There is no such account.
ACTOR = "NetBox"


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
            made = WRITES[change.kind].create(**self._place(change), **values, **common)
            return int(made.pk)
        if values:
            row = MODELS[change.kind].objects.get(pk=change.row)
            WRITES[change.kind].change(**{change.kind: row}, **values, **common)
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
