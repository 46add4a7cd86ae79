"""Imports of lines. Each row becomes an order, with the same rules, approval and activation test
as on a page.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _

from portal.core.encapsulations import Transport
from portal.core.vlan_tags import Tagging
from portal.imports import cells
from portal.imports.errors import LineBeingRemoved, LineIsOver, NamedNowhere
from portal.imports.kinds.kind import Actor, Batch, Claim, Column, Kind, RowValues, Text, names
from portal.inventory.models import Port
from portal.vll.errors import PortOfAnotherCustomer
from portal.vll.models import Vll, VllEnd
from portal.vll.operations import EndRequest, order_add
from portal.vll.operations.end_validation import frames_named
from portal.vll.states import TERMINAL_LIFECYCLES, Lifecycle

_AUTO, _ANY = "auto", "any"
_OF_AN_END = ("port", "tagging", "outer_vlan", "inner_vlan", "exact_match")
_OPTIONAL = ("eir_bps", "cbs_bytes", "ebs_bytes", "link_loss_forwarding")
_PORTS = ("a_port", "z_port")


def _vlan(cell: str, column: str) -> Any:
    """Read a VLAN id or ``any``. The order later checks the range 1 to 4094."""
    return _ANY if cell.casefold() == _ANY else cells.whole(cell, column)


def _lifecycle(cell: str, column: str) -> None:
    """Refuse a line that has ended. The portal's list contains such lines, and nobody wants to
    order them again.
    """
    if cell in TERMINAL_LIFECYCLES:
        raise LineIsOver(lifecycle=cell, field=column)


def _end(letter: str, port: str, vlan: str) -> tuple[Column, ...]:
    tagging: Text = _("untagged: the whole port; dot1q: one VLAN; qinq, dot1ad: two. Empty: by the VLANs")
    return (
        Column(
            name=f"{letter}_port",
            read=cells.port,
            meaning=_("Router and interface, with a colon between them"),
            example=port,
            required=True,
        ),
        Column(name=f"{letter}_tagging", read=cells.one_of(*Tagging), meaning=tagging, example=Tagging.DOT1Q),
        Column(
            name=f"{letter}_outer_vlan",
            read=_vlan,
            meaning=_("1 to 4094, or “any” for one that is free; empty for a whole port"),
            example=vlan,
        ),
        Column(
            name=f"{letter}_inner_vlan",
            read=cells.whole,
            meaning=_("1 to 4094, only with qinq and dot1ad"),
            example="",
        ),
        Column(
            name=f"{letter}_exact_match",
            read=cells.yes_or_no,
            meaning=_("“no” also accepts frames with further tags; empty: yes"),
            example="yes",
        ),
    )


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
        Column(
            name="description",
            read=cells.text(),
            meaning=_("Name or reference: identifies a customer’s line when a table is sent again"),
            example="Zürich–Amsterdam",
            required=True,
        ),
        *_end("a", "rhino:TenGigabitEthernet3/0/2", "100"),
        *_end("z", "hippo:TenGigabitEthernet3/0/2", _ANY),
        Column(
            name="svc_mtu",
            read=cells.size,
            meaning=_("The largest IP packet that is carried"),
            unit=_("bytes"),
            example="1500",
            required=True,
        ),
        Column(
            name="cir_bps",
            read=cells.rate,
            meaning=_("The bandwidth that is booked"),
            unit=_("bit/s"),
            example="100000000",
            required=True,
        ),
        Column(
            name="eir_bps",
            read=cells.rate,
            meaning=_("Excess rate, forwarded if capacity is free; empty: none"),
            unit=_("bit/s"),
            example="0",
        ),
        Column(
            name="cbs_bytes",
            read=cells.size,
            meaning=_("Burst; empty: calculated from the rate"),
            unit=_("bytes"),
            example="",
        ),
        Column(
            name="ebs_bytes",
            read=cells.size,
            meaning=_("Excess burst; empty: calculated from the rate"),
            unit=_("bytes"),
            example="",
        ),
        Column(
            name="transport",
            read=cells.one_of(_AUTO, *Transport),
            meaning=_("How frames cross the network; empty: auto"),
            example=_AUTO,
        ),
        Column(
            name="link_loss_forwarding",
            read=cells.yes_or_no,
            meaning=_("“yes”: if one end loses its link, the other end’s port is taken down too; empty: no"),
            example="no",
        ),
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
            keys = frames_named(
                _tagging(values, side),
                outer=outer,
                inner=inner,
                exact_match=values.get(f"{side}_exact_match", True),
            )
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
        order_add(
            user=actor.user,
            a_end=ends["a"],
            z_end=ends["z"],
            svc_mtu=values["svc_mtu"],
            cir_bps=values["cir_bps"],
            transport=values.get("transport", _AUTO),
            description=values["description"],
            now=now,
            **{name: values[name] for name in _OPTIONAL if name in values},
        )

    def _end(self, values: RowValues, side: str) -> EndRequest:
        place = values[f"{side}_port"]
        port = self._ports.get(place)
        if port is None:
            raise NamedNowhere(what="port", name=":".join(place), field=f"{side}_port")
        customer = values.get("customer")
        if customer is not None and port.customer is not None and port.customer.name != customer:
            raise PortOfAnotherCustomer(port=str(port), customer=customer, field=f"{side}_port")
        outer, inner = values.get(f"{side}_outer_vlan"), values.get(f"{side}_inner_vlan")
        return EndRequest(
            port=port.pk,
            tagging=_tagging(values, side),
            outer_vlan=outer,
            inner_vlan=inner,
            exact_match=values.get(f"{side}_exact_match", True),
        )


def _tagging(values: RowValues, side: str) -> Tagging:
    """Return the tagging in the row. If the cell is empty, return the tagging that the row's VLANs need."""
    if named := values.get(f"{side}_tagging"):
        return Tagging(named)
    if values.get(f"{side}_inner_vlan") is not None:
        return Tagging.QINQ
    return Tagging.UNTAGGED if values.get(f"{side}_outer_vlan") is None else Tagging.DOT1Q


def _facts(line: Vll) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "customer": line.customer.name,
        "description": line.description,
        "svc_mtu": line.svc_mtu,
        "cir_bps": line.cir_bps,
        "eir_bps": line.eir_bps,
        "link_loss_forwarding": line.link_loss_forwarding,
        "cbs_bytes": line.requested_cbs_bytes,
        "ebs_bytes": line.requested_ebs_bytes,
        "transport": line.transport,
        "requested_transport": line.requested_transport,
    }
    for end in line.ends.all():
        facts |= {f"{end.side}_{name}": value for name, value in _end_facts(end).items()}
    return facts


def _end_facts(end: VllEnd) -> dict[str, Any]:
    place = (end.port.router.name, end.port.interface)
    return dict(
        zip(_OF_AN_END, (place, end.tagging, end.outer_vlan, end.inner_vlan, end.exact_match), strict=True)
    )


def _as_requested(line: Mapping[str, Any], values: RowValues) -> dict[str, Any]:
    """Return the line's values for a comparison with the row.

    If the row leaves a choice to the portal ("any" or "auto") and the line was ordered with the same choice,
    return the choice. Otherwise return the value that the line has.
    """
    facts = dict(line)
    if values.get("transport") == facts["requested_transport"]:
        facts["transport"] = facts["requested_transport"]
    for side in "az":
        if values.get(f"{side}_outer_vlan") == _ANY and facts[f"{side}_outer_vlan"] is not None:
            facts[f"{side}_outer_vlan"] = _ANY
    return facts
