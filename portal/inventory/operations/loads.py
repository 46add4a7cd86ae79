"""Storing what the links' interfaces carry, as their routers' agents count it."""

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Q

from portal.inventory.models import BackboneLink, ObservedLoad, Router
from portal.inventory.reports import InterfaceReport, LoadReport


def loads_store(router: Router, interfaces: Iterable[InterfaceReport], now: datetime) -> None:
    """Of the interfaces that a link is on; what nothing tells keeps its time, and so grows old."""
    loads = {interface.name: interface.load for interface in interfaces if interface.load is not None}
    if not loads:
        return
    links = BackboneLink.objects.filter(Q(a_router=router) | Q(z_router=router)).order_by("pk")
    ObservedLoad.objects.bulk_create(
        [
            ObservedLoad(
                link=link, side=side, at=now, rx_bps=load.rx_bps, tx_bps=load.tx_bps, speed_bps=load.speed_bps
            )
            for link in links
            for side, load in _of_sides(link, router, loads)
        ],
        update_conflicts=True,
        unique_fields=["link", "side"],
        update_fields=["at", "rx_bps", "tx_bps", "speed_bps"],
    )


def _of_sides(
    link: BackboneLink, router: Router, loads: dict[str, LoadReport]
) -> Iterable[tuple[str, LoadReport]]:
    sides = (("a", link.a_router_id, link.a_interface), ("z", link.z_router_id, link.z_interface))
    return [(side, loads[name]) for side, at, name in sides if at == router.pk and name in loads]
