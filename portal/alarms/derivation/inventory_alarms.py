"""Alarms about links that differ from their declaration, and about nearly full ports and routers."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import Q

from portal.alarms.kinds import AlarmCondition, Kind
from portal.allocation.cpu_core_bookings import core_use_of
from portal.allocation.models import RouterLoad
from portal.inventory import port_link_state
from portal.inventory.models import FRESH, Port, Router
from portal.inventory.queries import interface_missing, links_with_observed_mtu, mtu_mismatch

# The booked fraction of bandwidth or cores from which the ISP must extend the network.
NEARLY_FULL = 0.8


def links(now: datetime) -> Iterator[AlarmCondition]:
    for link in links_with_observed_mtu().order_by("pk"):
        if mtu_mismatch(link):
            yield _link(link, Kind.LINK_MTU)
        if interface_missing(link):
            yield _link(link, Kind.LINK_INTERFACE)


def full_ports(now: datetime) -> Iterator[AlarmCondition]:
    """Yield ports on which nearly all bookable bandwidth is booked.

    The bookable bandwidth depends on the present speed of the link.
    """
    booked = port_link_state.booked_ports(Port.objects.select_related("router"))
    full = booked.filter(Q(booked_part__gte=NEARLY_FULL) | Q(booked_part=None))
    for port in full.order_by("pk"):
        yield AlarmCondition(
            kind=Kind.PORT_FULL,
            object=f"port:{port.pk}",
            name=str(port),
            facts={"booked": port.booked_bps, "all": port.bookable_now_bps},
            routers=(port.router_id,),
        )


def slow_ports(now: datetime) -> Iterator[AlarmCondition]:
    """Yield customer ports whose link is slower than agreed.

    The link negotiated a lower speed, or a bond has lost a member.
    """
    reporting = Q(router__observed__reported_at__gte=now - FRESH, router__observed__vpp_connected=True)
    ports = Port.objects.filter(reporting, retired_at=None, customer__isnull=False).select_related("router")
    for port in port_link_state.slow_ports(ports):
        yield AlarmCondition(
            kind=Kind.PORT_SLOW,
            object=f"port:{port.pk}",
            name=str(port),
            facts={
                "runs": port.link_bps,
                "agreed": port.speed_bps,
                "booked": port.booked_bps,
                "left": port.bookable_now_bps,
            },
            routers=(port.router_id,),
        )


def full_routers(now: datetime) -> Iterator[AlarmCondition]:
    booked = Router.objects.filter(pk__in=RouterLoad.objects.filter(booked__gt=0).values("router"))
    routers = list(booked.select_related("observed").order_by("pk"))
    use = core_use_of(routers)
    for router in routers:
        its = use[router.pk]
        if its.part >= NEARLY_FULL:
            yield AlarmCondition(
                kind=Kind.ROUTER_FULL,
                object=f"router:{router.pk}",
                name=router.name,
                facts={"percent": its.percent, "booked": its.booked_cores, "all": its.bookable_cores},
                routers=(router.pk,),
            )


def _link(link: Any, kind: Kind) -> AlarmCondition:
    both = (link.a_router_id, link.z_router_id)
    return AlarmCondition(kind=kind, object=f"link:{link.pk}", name=str(link), routers=both)
