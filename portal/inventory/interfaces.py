"""The interfaces that a router's agent reports, and the present use of an interface: a side of a backbone
link, or a port.
"""

import re
from dataclasses import dataclass

from django.utils.translation import gettext as _

from portal.core.whole_number import whole_number
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
        return _("another change")
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
