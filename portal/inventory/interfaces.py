"""The interfaces that a router's agent reports: their use, and the state of the links of ports."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.db import models
from django.db.models import (
    BigIntegerField,
    DecimalField,
    Exists,
    F,
    FloatField,
    Func,
    OuterRef,
    QuerySet,
    Subquery,
    Value,
)
from django.db.models.functions import Cast, Least, NullIf
from django.db.models.lookups import LessThan
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from portal.core.quantities import whole_number
from portal.inventory.errors import InterfaceTaken
from portal.inventory.models import BackboneLink, InterfaceUse, ObservedInterface, Port, Router


def interface_taken(*, router: Router, interface: str, field: str) -> InterfaceTaken:
    """Return the error that names the interface's present use."""
    use = InterfaceUse.objects.filter(router_id=router.pk, interface=interface).first()
    return InterfaceTaken(router=router.name, interface=interface, used_by=_user(use), field=field)


def is_in_use(*, router: Router, interface: str, except_link: int | None) -> bool:
    """Return whether anything except the link ``except_link`` uses the interface."""
    uses = InterfaceUse.objects.filter(router_id=router.pk, interface=interface)
    return (uses if except_link is None else uses.exclude(link_id=except_link)).exists()


def _user(use: InterfaceUse | None) -> str:
    if use is None:
        return str(_("another change"))
    if use.link_id is not None:
        link = BackboneLink.objects.select_related("a_router", "z_router").filter(pk=use.link_id).first()
        return _("link {link}").format(link=link)
    port = Port.objects.select_related("router").filter(pk=use.port_id).first()
    return _("port {port}").format(port=port)


# No router of an ISP has more interfaces. On a router with more, users type the name.
MOST = 1000
# A number in the name of an interface, which has at most 63 characters.
_LONGEST_NUMBER = 63
# Interfaces of VPP itself, which lead neither to a customer nor to another router.
_NEITHER = re.compile(r"(loop\d+|local0|bvi\d+)\Z")


@dataclass(frozen=True, slots=True)
class ReportedInterface:
    """An interface. ``port`` or ``link``: its present use; both are None if it is free."""

    observed: ObservedInterface
    port: Port | None = None
    link: BackboneLink | None = None

    @property
    def is_free(self) -> bool:
        return self.port is None and self.link is None

    @property
    def is_up(self) -> bool:
        return self.observed.admin_up and self.observed.link_up


def reported_interfaces(router: Router) -> list[ReportedInterface]:
    """Return interfaces that can be a port or a side of a link: free ones first, by name.

    This takes four SQL statements.
    """
    observed = ObservedInterface.objects.filter(router=router).order_by("name")[:MOST]
    uses = InterfaceUse.objects.filter(router_id=router.pk)
    ports = Port.objects.select_related("router", "customer").in_bulk(
        [use.port_id for use in uses if use.port_id is not None]
    )
    links = BackboneLink.objects.select_related("a_router", "z_router").in_bulk(
        [use.link_id for use in uses if use.link_id is not None]
    )
    used = {use.interface: (ports.get(use.port_id or 0), links.get(use.link_id or 0)) for use in uses}
    found = [
        ReportedInterface(each, *used.get(each.name, (None, None)))
        for each in observed
        if not _NEITHER.match(each.name)
    ]
    return sorted(found, key=lambda each: (not each.is_free, _natural(each.observed.name)))


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """Return a sort key that orders numbers by value: GigabitEthernet2 comes before GigabitEthernet10."""
    parts = re.split(r"([0-9]+)", name)
    numbers = [whole_number(part, most=10**_LONGEST_NUMBER - 1) for part in parts]
    return [(number is not None, number or 0, part) for number, part in zip(numbers, parts, strict=True)]


Rows = TypeVar("Rows", bound=QuerySet[Port])
# The product of two rates has up to 38 digits, because a rate has up to 19.
_NUMERIC = DecimalField(max_digits=38, decimal_places=0)


class LinkState(models.TextChoices):
    UP = "up", pgettext_lazy("a link", "Up")
    DOWN = "down", _("No link")
    # The interface is shut in its router's configuration.
    OFF = "off", _("Switched off")
    # The router reports, but has no interface of this name.
    MISSING = "missing", _("Not there yet")
    UNKNOWN = "unknown", _("Not reported")


@dataclass(frozen=True, slots=True)
class PortLink:
    """The state of a port's link.

    ``since``: None if the state has not changed since the first report. ``observed``: the last reported
    interface; None if there was none. ``reported_at``: the time of the router's last report.
    """

    state: LinkState
    since: datetime | None = None
    observed: ObservedInterface | None = None
    reported_at: datetime | None = None


def port_link(port: Port, *, reported_since: datetime) -> PortLink:
    """Return the state of a port's link.

    The state is unknown if the last report is older than ``reported_since`` or VPP is away. Read the port
    with ``select_related("router__observed")``.
    """
    router = getattr(port.router, "observed", None)
    observed = ObservedInterface.objects.filter(router=port.router_id, name=port.interface).first()
    if router is None:
        return PortLink(LinkState.UNKNOWN)
    if not router.is_current(reported_since=reported_since):
        return PortLink(LinkState.UNKNOWN, observed=observed, reported_at=router.reported_at)
    if observed is None:
        return PortLink(LinkState.MISSING, reported_at=router.reported_at)
    state = LinkState.OFF if not observed.admin_up else LinkState.UP if observed.link_up else LinkState.DOWN
    return PortLink(state, observed.link_since, observed, router.reported_at)


def bookable_at(link: Any, *, bookable: Any, speed: Any) -> Cast:
    """Return the bandwidth (bit/s) that can be booked on a port while its link has the speed ``link``.

    The result is ``bookable`` * ``link`` / ``speed``, rounded down. ``speed`` is the agreed speed. A link
    that is faster than agreed, or of unknown speed (null), counts with the agreed speed. The product of two
    rates does not fit into a bigint, and a float would not be exact.
    """
    runs_at = Least(link, speed, output_field=BigIntegerField())
    product = Cast(bookable, _NUMERIC) * Cast(runs_at, _NUMERIC)
    return Cast(Func(product, speed, function="div", output_field=_NUMERIC), BigIntegerField())


def with_link_speed(ports: Rows) -> Rows:
    """Return the ports, read together with ``Port.link_bps`` and ``Port.bookable_now_bps``."""
    here = ObservedInterface.speeds_of_up_links().filter(
        router=OuterRef("router"), name=OuterRef("interface")
    )
    return ports.annotate(
        link_bps=Subquery(here[:1]),
        bookable_now_bps=bookable_at("link_bps", bookable="bookable_bps", speed="speed_bps"),
    )


def booked_ports(ports: QuerySet[Port]) -> QuerySet[Any]:
    """Return the ports with bookings, with the annotations of ``with_link_speed`` and ``booked_part``.

    ``booked_part``: booked divided by bookable bandwidth at the present speed of the link. It is above 1 if
    too much is booked, and None if nothing can be booked.
    """
    rows: Any = with_link_speed(ports.filter(booked_bps__gt=0))
    bookable = Cast("bookable_now_bps", FloatField())
    part = Cast("booked_bps", FloatField()) / NullIf(bookable, Value(0.0))
    annotated: QuerySet[Any] = rows.annotate(booked_part=part)
    return annotated


def slow_ports(ports: QuerySet[Port]) -> QuerySet[Port]:
    """Return the ``ports`` whose link is up and slower than agreed, with the link's speed."""
    return with_link_speed(ports.filter(Exists(_slower_links()))).order_by("pk")


def overbooked_ports(ports: QuerySet[Port]) -> QuerySet[Port]:
    """Return the ``ports`` whose lines have booked more than the link now carries."""
    room = bookable_at(F("speed_bps"), bookable=OuterRef("bookable_bps"), speed=OuterRef("speed_bps"))
    return ports.filter(Exists(_slower_links().filter(LessThan(room, OuterRef("booked_bps")))))


def _slower_links() -> QuerySet[Any, Any]:
    """Return the links of the port of the outer query that are up and slower than agreed."""
    return ObservedInterface.speeds_of_up_links().filter(
        router=OuterRef("router"), name=OuterRef("interface"), speed_bps__lt=OuterRef("speed_bps")
    )
