"""The link of a port, as its router reports it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.db import models
from django.db.models import Exists, FloatField, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Cast, Coalesce, Least, NullIf
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


def with_link_speed(ports: Rows) -> Rows:
    """Return the ports, read together with the speed of their links (``Port.link_bps``)."""
    here = ObservedInterface.speeds_of_up_links().filter(
        router=OuterRef("router"), name=OuterRef("interface")
    )
    return ports.annotate(link_bps=Subquery(here[:1]))


def booked_ports(ports: QuerySet[Port]) -> QuerySet[Any]:
    """Return those ports on which something is booked, with ``link_bps`` and ``booked_part``.

    ``booked_part``: booked of bookable at the present speed of the link, above 1 where too much is booked;
    None where nothing can be booked. It has a fraction: the product of two rates does not fit into a bigint.
    """
    rows: Any = with_link_speed(ports.filter(booked_bps__gt=0))
    runs_at = Cast(Least(Coalesce("link_bps", "speed_bps"), "speed_bps"), FloatField())
    bookable = Cast("bookable_bps", FloatField()) * runs_at / Cast("speed_bps", FloatField())
    part = Cast("booked_bps", FloatField()) / NullIf(bookable, Value(0.0))
    annotated: QuerySet[Any] = rows.annotate(booked_part=part)
    return annotated


def slow_ports(ports: QuerySet[Port]) -> QuerySet[Port]:
    """Return those ports whose link is up and slower than the agreed speed, with their ``link_bps``."""
    slower = ObservedInterface.speeds_of_up_links().filter(
        router=OuterRef("router"), name=OuterRef("interface"), speed_bps__lt=OuterRef("speed_bps")
    )
    return with_link_speed(ports.filter(Exists(slower))).order_by("pk")


def overbooked_ports(ports: QuerySet[Port]) -> set[int]:
    """Return the ids of those ports whose lines have booked more than the link now carries."""
    return {port.pk for port in slow_ports(ports.filter(booked_bps__gt=0)) if port.is_overbooked}
