"""The portal's inventory in the form that is compared with NetBox's inventory."""

from typing import Any

from django.db.models import QuerySet

from portal.accounts.models import Customer
from portal.inventory.models import BackboneLink, Port, Router, Site
from portal.netbox_sync.import_diff import LocalRow
from portal.netbox_sync.import_mapping import CUSTOMER, LINK, PORT, ROUTER, SITE, sides_place
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
