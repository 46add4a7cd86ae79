"""The changes that the adoption of a found line makes to tags, ports and bandwidth."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy

from portal.core.units import rate_text
from portal.inventory.found_lines import FoundEnd, FoundLine
from portal.inventory.models import Port
from portal.vll.models import Order


class Difference(TextChoices):
    """The kinds of differences, each with a sentence for users."""

    TAG = (
        "tag",
        gettext_lazy(
            "The portal's tag replaces the tag “{tag}” of {interface} on {router}, which is restored when"
            " the line is let go of."
        ),
    )
    PORT_MADE = (
        "port_made",
        gettext_lazy("{port} of {router} becomes a port of {customer}."),
    )
    PORT_GIVEN = (
        "port_given",
        gettext_lazy("{port} of {router} has no customer yet and is assigned to {customer}."),
    )
    LIMITED = (
        "limited",
        gettext_lazy(
            "{rate} are booked at once, and enforced once both routers have the line. The line has no"
            " limit today."
        ),
    )


@dataclass(frozen=True, slots=True)
class AdoptionDifference:
    code: Difference
    facts: dict[str, Any]

    @property
    def sentence(self) -> str:
        """Return the sentence in the reader's language."""
        facts = dict(self.facts)
        if "cir_bps" in facts:
            facts["rate"] = rate_text(facts["cir_bps"])
        return self.code.label.format(**facts)


class FoundPorts:
    """The ports at the ends of found lines, read in one query before the lines are adopted."""

    def __init__(self, lines: Iterable[FoundLine]) -> None:
        ends = [end for line in lines for end in line.ends]
        ports = Port.objects.filter(
            router__in={end.router.pk for end in ends},
            interface__in={end.port for end in ends},
            retired_at__isnull=True,
        ).select_related("customer")
        self._ports = {(port.router_id, port.interface): port for port in ports}

    def of(self, end: FoundEnd) -> Port | None:
        return self._ports.get((end.router.pk, end.port))

    def customer(self, line: FoundLine) -> str:
        """Return the name of the customer of the line's ports, or "" if no existing port has a customer."""
        ports = [self.of(end) for end in line.ends]
        return next((port.customer.name for port in ports if port and port.customer), "")


def adoption_differences(line: FoundLine, order: Order, ports: FoundPorts) -> list[AdoptionDifference]:
    """Return the differences that the adoption of ``line`` makes.

    ``order``: the adoption order, real or simulated. ``ports``: the ports before the adoption.
    """
    found, customer = [], order.vll.customer.name
    for end in line.ends:
        where = {"router": end.router.name, "interface": end.interface}
        port, of_port = ports.of(end), {"router": end.router.name, "port": end.port, "customer": customer}
        if port is None:
            found.append(AdoptionDifference(Difference.PORT_MADE, of_port))
        elif port.customer is None:
            found.append(AdoptionDifference(Difference.PORT_GIVEN, of_port))
        if end.tag:
            found.append(AdoptionDifference(Difference.TAG, where | {"tag": end.tag}))
    found.append(AdoptionDifference(Difference.LIMITED, {"cir_bps": order.vll.cir_bps}))
    return found
