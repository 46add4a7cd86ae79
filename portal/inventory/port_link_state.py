"""The link of a port, as its router reports it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.db import models
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from portal.inventory.models import ObservedInterface, Port

Rows = TypeVar("Rows", bound=QuerySet[Port])


class LinkState(models.TextChoices):
    UP = "up", pgettext_lazy("a link", "Up")
    DOWN = "down", _("No link")
    # The interface is shut in its router's configuration.
    OFF = "off", _("Switched off")
    # The router reports, but no interface of this name.
    MISSING = "missing", _("Not there yet")
    UNKNOWN = "unknown", _("Not reported")


@dataclass(frozen=True, slots=True)
class PortLink:
    """``since``: None where it has been so since it was first reported.

    ``seen``: as it was reported last, None for never; ``reported_at``: when its router last reported.
    """

    state: LinkState
    since: datetime | None = None
    seen: ObservedInterface | None = None
    reported_at: datetime | None = None


def port_link(port: Port, *, heard_since: datetime) -> PortLink:
    """Of a router that was not heard since then, or whose VPP is away, nobody knows.

    Select ``router.observed`` together with the port.
    """
    router = getattr(port.router, "observed", None)
    seen = ObservedInterface.objects.filter(router=port.router_id, name=port.interface).first()
    if router is None:
        return PortLink(LinkState.UNKNOWN)
    if not router.tells_of_vpp(heard_since=heard_since):
        return PortLink(LinkState.UNKNOWN, seen=seen, reported_at=router.reported_at)
    if seen is None:
        return PortLink(LinkState.MISSING, reported_at=router.reported_at)
    state = LinkState.OFF if not seen.admin_up else LinkState.UP if seen.link_up else LinkState.DOWN
    return PortLink(state, seen.link_since, seen, router.reported_at)


def link_speed_bps(port: Port) -> int | None:
    """The speed (bit/s) of the port's link while it is up; None where nobody reports one.

    It costs no statement for a port of ``with_link_speed``.
    """
    if hasattr(port, "link_bps"):
        read_with_it: int | None = port.link_bps
        return read_with_it
    return _up(ObservedInterface.objects.filter(router=port.router_id, name=port.interface)).first()


def with_link_speed(ports: Rows) -> Rows:
    """The ports, read together with the speed of their links as ``link_bps``."""
    here = ObservedInterface.objects.filter(router=OuterRef("router"), name=OuterRef("interface"))
    return ports.annotate(link_bps=Subquery(_up(here)[:1]))


def bookable_at(port: Port, link_bps: int | None) -> int:
    """What can be booked (bit/s) while the link runs at ``link_bps``: the same part of it as of the speed.

    A faster link makes no more bookable than was agreed. ``portal.allocation.bandwidth_bookings`` has the
    same rule in SQL.
    """
    if link_bps is None or link_bps >= port.speed_bps:
        return port.bookable_bps
    return port.bookable_bps * link_bps // port.speed_bps


def slower_links(ports: QuerySet[Port]) -> Iterator[tuple[Port, int]]:
    """Those ports whose link is up and slower than the port's speed, with the link's speed (bit/s)."""
    # The type checker does not know what the rows are annotated with.
    annotated: Any = with_link_speed(ports)
    slow = annotated.filter(link_bps__lt=F("speed_bps"))
    for port in slow.select_related("router").order_by("pk"):
        yield port, port.link_bps


def _up(seen: QuerySet[ObservedInterface]) -> QuerySet[ObservedInterface, int | None]:
    return seen.filter(admin_up=True, link_up=True).values_list("speed_bps", flat=True)
