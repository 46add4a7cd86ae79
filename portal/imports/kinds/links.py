"""Imports of backbone links."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _

from portal.imports import cells
from portal.imports.kinds.kind import Actor, Batch, Claim, Column, Kind, RowValues, named, names
from portal.inventory.models import BackboneLink, Router
from portal.inventory.models.link import link_name
from portal.inventory.operations import link_create

_OF_A_SIDE = ("router", "interface", "metric", "ip_mtu")
_OF_BOTH = ("ipv4", "ipv6", "in_service")
_A_PLACE = ("a_router", "a_interface")
_Z_PLACE = ("z_router", "z_interface")


def _side(letter: str, example: str, interface: str) -> tuple[Column, ...]:
    return (
        Column(
            name=f"{letter}_router",
            read=cells.router_name,
            meaning=_("The router’s name"),
            example=example,
            required=True,
        ),
        Column(
            name=f"{letter}_interface",
            read=cells.text(),
            meaning=_("As VPP names it"),
            example=interface,
            required=True,
        ),
        Column(
            name=f"{letter}_metric",
            read=cells.whole,
            meaning=_("The metric of this side, as in the IGP; empty: 10"),
            example="10",
        ),
        Column(
            name=f"{letter}_ip_mtu",
            read=cells.size,
            meaning=_("The IP MTU of this side; empty: not known, and no line can be ordered over the link"),
            unit=_("bytes"),
            example="9000",
        ),
    )


class Links(Kind):
    slug = "links"
    title = _("Backbone links")
    about = _("Import their routers first. Which side is A and which is Z makes no difference.")
    columns = (
        *_side("a", "rhino", "TenGigabitEthernet3/0/0"),
        *_side("z", "hippo", "TenGigabitEthernet3/0/1"),
        Column(name="ipv4", read=cells.yes_or_no, meaning=_("Carries IPv4; empty: yes"), example="yes"),
        Column(name="ipv6", read=cells.yes_or_no, meaning=_("Carries IPv6; empty: yes"), example="yes"),
        Column(
            name="in_service",
            read=cells.yes_or_no,
            meaning=_("Used for path calculation; empty: yes"),
            example="yes",
        ),
    )

    def name(self, values: RowValues) -> str:
        return link_name(*_ends(values))

    def claims(self, values: RowValues) -> Iterator[Claim]:
        for router, interface in (_A_PLACE, _Z_PLACE):
            yield Claim(interface, f"{values[router]}:{values[interface]}", "interface")

    def open(self, rows: Sequence[RowValues]) -> Batch:
        return _Batch(rows)


class _Batch(Batch):
    def __init__(self, rows: Sequence[RowValues]) -> None:
        of_rows = Router.objects.filter(name__in=names(rows, "a_router", "z_router"), retired_at__isnull=True)
        # Lock the routers of all rows, in the same sequence as the operation for a single link, to avoid
        # deadlocks.
        locked = of_rows.select_for_update(no_key=True).order_by("pk")
        self._routers = {router.name: router for router in locked}
        self._there: dict[tuple[str, ...], dict[str, Any]] = {}
        for link in BackboneLink.objects.filter(
            a_router__in=self._routers.values(),
            a_interface__in=names(rows, "a_interface", "z_interface"),
        ).select_related("a_router", "z_router"):
            facts = _facts(link)
            self._there[_ends(facts)] = facts
            turned = _turned(facts)
            self._there[_ends(turned)] = turned

    def find(self, values: RowValues) -> Mapping[str, Any] | None:
        return self._there.get(_ends(values))

    def make(self, values: RowValues, *, actor: Actor, now: datetime) -> None:
        routers = {name: named(self._routers, values, name, "router") for name in ("a_router", "z_router")}
        link_create(**{**values, **routers}, user=actor.user, now=now)


def _ends(values: RowValues) -> tuple[str, str, str, str]:
    a, z = (values["a_router"], values["a_interface"]), (values["z_router"], values["z_interface"])
    return (*a, *z)


def _facts(link: BackboneLink) -> dict[str, Any]:
    facts = {f"{side}_{name}": getattr(link, f"{side}_{name}") for side in "az" for name in _OF_A_SIDE}
    facts |= {"a_router": link.a_router.name, "z_router": link.z_router.name}
    return facts | {name: getattr(link, name) for name in _OF_BOTH}


def _turned(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the same link with the sides a and z exchanged."""
    of_a = {f"a_{name}": facts[f"z_{name}"] for name in _OF_A_SIDE}
    return facts | of_a | {f"z_{name}": facts[f"a_{name}"] for name in _OF_A_SIDE}
