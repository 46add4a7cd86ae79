"""Imports of lines. Each row becomes an order, with the same rules, approval and test as on a page."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _

from portal.core.network.vlan_tags import Tagging, Tags
from portal.imports import cells
from portal.imports.errors import LineBeingRemoved, LineIsOver, NamedNowhere
from portal.imports.kinds.kind import Actor, Batch, Claim, Column, Kind, RowValues, Text, names
from portal.inventory.models import Port
from portal.vll.errors import PortOfAnotherCustomer
from portal.vll.line_rules import frames_named
from portal.vll.line_spec import ANY, END, LINE, EndSpec, LineSpec, Property
from portal.vll.models import Vll
from portal.vll.operations.add_line import order_add
from portal.vll.states import TERMINAL_LIFECYCLES, Lifecycle

_UNITS: dict[str, Text] = {"bytes": _("bytes"), "bit/s": _("bit/s"), "": ""}
_PORTS = ("a_port", "z_port")


def _vlan(cell: str, column: str) -> Any:
    """Read a VLAN id or ``any``. The order later checks the range 1 to 4094."""
    return ANY if cell.casefold() == ANY else cells.whole(cell, column)


def _lifecycle(cell: str, column: str) -> None:
    """Refuse a line that has ended. The portal's list has such lines; nobody wants to order them again."""
    if cell in TERMINAL_LIFECYCLES:
        raise LineIsOver(lifecycle=cell, field=column)


def _reader(each: Property) -> cells.Reader:
    if each.is_flag:
        return cells.yes_or_no
    if each.choices:
        return cells.one_of(*each.choices)
    by_name = {"port": cells.port, "outer_vlan": _vlan, "description": cells.text()}
    by_unit = {"bytes": cells.size, "bit/s": cells.rate, "": cells.whole}
    return by_name.get(each.name) or by_unit[each.unit]


def _columns(properties: Iterable[Property], prefix: str = "", **examples: str) -> list[Column]:
    return [
        Column(
            name=f"{prefix}{each.name}",
            read=_reader(each),
            meaning=each.cell_meaning,
            unit=_UNITS[each.unit],
            example=examples.get(each.name, each.cell_example),
            # The description identifies a line. An empty cell for the tagging means: by the VLANs.
            required=each.name == "description" or (each.is_required and each.name != "tagging"),
        )
        for each in properties
    ]


class Lines(Kind):
    slug = "lines"
    title = _("Lines to order")
    about = _(
        "Import their ports first. You can send the list of lines (CSV) as it is: its other columns"
        " are ignored."
    )
    # One row per transaction. An order first locks leases, type by type, and then the sums of routers. A
    # second order in the same transaction would lock leases while the sums are still locked from the first
    # order. It could then deadlock with other orders.
    batch = 1
    columns = (
        Column(
            name="customer",
            read=cells.text(),
            meaning=_("Optional check: must be the customer that owns both ports"),
            example="Alpine Dairy",
        ),
        *_columns(LINE[:1]),
        *_columns(END, "a_", port="rhino:TenGigabitEthernet3/0/2", outer_vlan="100"),
        *_columns(END, "z_", port="hippo:TenGigabitEthernet3/0/2", outer_vlan=ANY),
        *_columns(LINE[1:]),
        Column(
            name="lifecycle",
            read=_lifecycle,
            meaning=_("Only in exported lists; rows of terminated lines are refused. Leave it empty"),
            example="",
        ),
    )
    # Columns of vlls.csv that an order does not need.
    passed_over = (
        *("id", "created_at", "decommission_at", "health", "health_cause", "admin_status"),
        *("oper_status", "in_sync", "vni", "gre_key", "a_site", "z_site"),
    )

    def name(self, values: RowValues) -> str:
        return str(values["description"])

    def claims(self, values: RowValues) -> Iterator[Claim]:
        yield Claim("description", " ".join(filter(None, (values.get("customer"), values["description"]))))
        for side in "az":
            outer, inner = values.get(f"{side}_outer_vlan"), values.get(f"{side}_inner_vlan")
            tags = Tags(_tagging(values, side), outer, inner, values.get(f"{side}_exact_match", True))
            keys = None if outer == ANY else frames_named(tags)
            if keys is not None:
                port = ":".join(values[f"{side}_port"])
                vlans = ".".join(str(tag) for tag in (outer, inner) if tag is not None)
                column = f"{side}_outer_vlan" if vlans else f"{side}_port"
                yield Claim(column, f"{port} {vlans}".rstrip(), port, keys)

    def open(self, rows: Sequence[RowValues]) -> Batch:
        return _Batch(rows)


class _Batch(Batch):
    def __init__(self, rows: Sequence[RowValues]) -> None:
        places = names(rows, *_PORTS)
        of_rows = Port.objects.filter(
            router__name__in={router for router, _interface in places},
            interface__in={interface for _router, interface in places},
            retired_at__isnull=True,
        ).select_related("router", "customer")
        found = of_rows.locked().order_by("pk")
        self._ports = {(port.router.name, port.interface): port for port in found}
        self._there: dict[tuple[int, str], list[dict[str, Any]]] = {}
        lines = Vll.objects.filter(
            description__in=names(rows, "description"),
            customer__in={port.customer_id for port in self._ports.values()},
        ).exclude(lifecycle__in=TERMINAL_LIFECYCLES)
        self._leaving: set[tuple[int, str]] = set()
        for line in lines.select_related("customer").prefetch_related("ends__port__router"):
            place = (line.customer_id, line.description)
            if line.lifecycle == Lifecycle.PENDING_TERMINATE:
                self._leaving.add(place)
            else:
                self._there.setdefault(place, []).append(_facts(line))

    def find(self, values: RowValues) -> Mapping[str, Any] | None:
        port = self._ports.get(values["a_port"])
        if port is None or port.customer_id is None:
            return None
        place = (port.customer_id, values["description"])
        if place in self._leaving and place not in self._there:
            raise LineBeingRemoved(description=values["description"], field="description")
        # If several lines have the same name, take the line that is most similar to the row.
        return max(
            (_as_requested(line, values) for line in self._there.get(place, [])),
            key=lambda line: sum(line[name] == value for name, value in values.items()),
            default=None,
        )

    def make(self, values: RowValues, *, actor: Actor, now: datetime) -> None:
        ends = {side: self._end(values, side) for side in "az"}
        spec = LineSpec(
            a_end=ends["a"],
            z_end=ends["z"],
            **{each.name: values[each.name] for each in LINE if each.name in values},
        )
        order_add(user=actor.user, spec=spec, now=now)

    def _end(self, values: RowValues, side: str) -> EndSpec:
        place = values[f"{side}_port"]
        port = self._ports.get(place)
        if port is None:
            raise NamedNowhere(what="port", name=":".join(place), field=f"{side}_port")
        customer = values.get("customer")
        if customer is not None and port.customer is not None and port.customer.name != customer:
            raise PortOfAnotherCustomer(port=str(port), customer=customer, field=f"{side}_port")
        end = {each.name: values[f"{side}_{each.name}"] for each in END if f"{side}_{each.name}" in values}
        return EndSpec(**end | {"port": port.pk, "tagging": _tagging(values, side)})


def _tagging(values: RowValues, side: str) -> Tagging:
    """Return the tagging in the row. If the cell is empty, return the tagging that the row's VLANs need."""
    if named := values.get(f"{side}_tagging"):
        return Tagging(named)
    if values.get(f"{side}_inner_vlan") is not None:
        return Tagging.QINQ
    return Tagging.UNTAGGED if values.get(f"{side}_outer_vlan") is None else Tagging.DOT1Q


def _facts(line: Vll) -> dict[str, Any]:
    facts = {each.name: getattr(line, each.column) for each in LINE}
    facts |= {
        "customer": line.customer.name,
        "transport": line.transport,
        "requested_transport": line.requested_transport,
    }
    for end in line.ends.all():
        facts |= {f"{end.side}_{each.name}": getattr(end, each.name) for each in END if each.name != "port"}
        facts[f"{end.side}_port"] = (end.port.router.name, end.port.interface)
    return facts


def _as_requested(line: Mapping[str, Any], values: RowValues) -> dict[str, Any]:
    """Return the line's values for a comparison with the row.

    If the row leaves a choice to the portal ("any" or "auto") and the line was ordered with the same choice,
    return the choice. Otherwise return the value that the line has.
    """
    facts = dict(line)
    if values.get("transport") == facts["requested_transport"]:
        facts["transport"] = facts["requested_transport"]
    for side in "az":
        if values.get(f"{side}_outer_vlan") == ANY and facts[f"{side}_outer_vlan"] is not None:
            facts[f"{side}_outer_vlan"] = ANY
    return facts
