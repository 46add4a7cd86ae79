"""Imports of customers' ports."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _

from portal.accounts.models import Customer
from portal.imports import cells
from portal.imports.kinds.kind import Actor, Batch, Claim, Column, Kind, RowValues, named, names
from portal.inventory.models import Port, Router
from portal.inventory.operations import port_create

_FACTS = (
    "interface",
    "description",
    "kind",
    "speed_bps",
    "bookable_bps",
    "oversubscription_percent",
    "max_frame",
)


class Ports(Kind):
    slug = "ports"
    title = _("Ports")
    about = _("Import their routers and customers first.")
    columns = (
        Column(
            name="router",
            read=cells.router_name,
            meaning=_("The router’s name"),
            example="rhino",
            required=True,
        ),
        Column(
            name="interface",
            read=cells.text(),
            meaning=_("As VPP names it"),
            example="TenGigabitEthernet3/0/2",
            required=True,
        ),
        Column(
            name="customer",
            read=cells.text(),
            meaning=_("The customer that it belongs to; empty: none yet"),
            example="Alpine Dairy",
        ),
        Column(name="description", read=cells.text(), meaning=_("Free text"), example="Rack 7, port 3"),
        Column(
            name="kind",
            read=cells.one_of(*Port.Kind.values),
            meaning=_("uni or enni; empty: uni"),
            example="uni",
        ),
        Column(
            name="speed_bps",
            read=cells.rate,
            meaning=_("Interface speed"),
            unit=_("bit/s"),
            example="10000000000",
            required=True,
        ),
        Column(
            name="oversubscription_percent",
            read=cells.whole,
            meaning=_("Part of the speed that may be booked; empty: the policy or the next column applies"),
            unit="%",
            example="100",
        ),
        Column(
            name="bookable_bps",
            read=cells.rate,
            meaning=_("Bookable rate, instead of a percentage"),
            unit=_("bit/s"),
            example="",
        ),
        Column(
            name="max_frame",
            read=cells.size,
            meaning=_("The largest frame, without FCS; empty: 9022"),
            unit=_("bytes"),
            example="9022",
        ),
    )

    def name(self, values: RowValues) -> str:
        return f"{values['router']}:{values['interface']}"

    def claims(self, values: RowValues) -> Iterator[Claim]:
        yield Claim("interface", self.name(values))

    def open(self, rows: Sequence[RowValues]) -> Batch:
        return _Batch(rows)


class _Batch(Batch):
    def __init__(self, rows: Sequence[RowValues]) -> None:
        routers = Router.objects.filter(name__in=names(rows, "router"), retired_at__isnull=True)
        customers = Customer.objects.filter(name__in=names(rows, "customer"))
        # To avoid deadlocks, lock routers before customers, and each in the order of their ids, like the
        # operation for a single port.
        of_rows = routers.select_for_update(no_key=True).order_by("pk")
        self._routers = {router.name: router for router in of_rows}
        owners = customers.select_for_update(no_key=True).order_by("pk")
        self._customers = {customer.name: customer for customer in owners}
        there = Port.objects.filter(
            router__in=self._routers.values(),
            interface__in=names(rows, "interface"),
            retired_at__isnull=True,
        ).select_related("router", "customer")
        self._there = {(port.router.name, port.interface): port for port in there}

    def find(self, values: RowValues) -> Mapping[str, Any] | None:
        port = self._there.get((values["router"], values["interface"]))
        if port is None:
            return None
        facts = {name: getattr(port, name) for name in _FACTS}
        return facts | {"router": port.router.name, "customer": port.customer and port.customer.name}

    def make(self, values: RowValues, *, actor: Actor, now: datetime) -> None:
        router = named(self._routers, values, "router", "router")
        customer = named(self._customers, values, "customer", "customer")
        rest = {name: value for name, value in values.items() if name not in ("router", "customer")}
        port_create(router=router, customer=customer, user=actor.user, now=now, **rest)
