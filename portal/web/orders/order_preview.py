"""The preview of an order: whether it is possible, what it changes, and its path."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.core.network.encapsulations import Transport
from portal.core.network.required_mtu import SvcMtuOutOfRange, carried_frame
from portal.core.network.vlan_tags import Tagging
from portal.core.reader_texts import rate_text
from portal.inventory.models import Port
from portal.vll.line_revision import Difference, content_of, differences_between, differences_of
from portal.vll.line_spec import AUTO, LineSpec, Property
from portal.vll.models import Order
from portal.vll.quote import Quote
from portal.vll.states import IN_SERVICE_ACTIONS, OrderAction
from portal.web.lines.paths import LinePath, line_path
from portal.web.orders.order_form import OrderForm, Problem
from portal.web.page.units import end_name, transport

_TAGGINGS: dict[str, str] = {
    Tagging.UNTAGGED: gettext_noop("whole port"),
    Tagging.DOT1Q: gettext_noop("one VLAN"),
    Tagging.QINQ: gettext_noop("two VLANs (QinQ)"),
    Tagging.DOT1AD: gettext_noop("two VLANs (802.1ad)"),
}


@dataclass(frozen=True, slots=True)
class DiffRow:
    """A value, before and after the change.

    ``before``: "–" if there was no value, as for a new line. ``side``: "a", "z", or "" for a value of the
    line. ``label``: the name of the value, without the end.
    """

    side: str
    label: str
    before: str
    after: str

    @property
    def name(self) -> str:
        """The label, with the end before it if the value belongs to an end."""
        return f"{end_name(self.side)}: {self.label}" if self.side else self.label


def diff_rows_of(order: Order) -> list[DiffRow]:
    """Return the rows of an order: all values of a new line, or the changed values of an existing line."""
    return _diff_rows(differences_of(order) if order.action in IN_SERVICE_ACTIONS else _all_of(order))


def diff_rows_between(before: LineSpec, after: LineSpec, *, vlans: Mapping[str, int | None]) -> list[DiffRow]:
    """Return the differences between two specifications of the same line.

    ``vlans``: the current outer VLAN of each end. It replaces "any" in ``before``.
    """
    now = {side: replace(end, outer_vlan=vlans[side]) for side, end in before.ends.items()}
    wanted = {
        side: now[side] if after.ends[side] == end else after.ends[side] for side, end in before.ends.items()
    }
    present = replace(before, a_end=now["a"], z_end=now["z"])
    return _diff_rows(differences_between(present, replace(after, a_end=wanted["a"], z_end=wanted["z"])))


def _diff_rows(found: list[Difference]) -> list[DiffRow]:
    values = {value for each in found if each.property.name == "port" for value in (each.before, each.after)}
    ports = Port.objects.select_related("router").in_bulk({value for value in values if value})
    return [
        DiffRow(
            each.side,
            str(each.property.label),
            _text(each.property, each.before, ports),
            _text(each.property, each.after, ports),
        )
        for each in found
    ]


def _all_of(order: Order) -> list[Difference]:
    new = Order(action=OrderAction.MODIFY, before={}, after=content_of(order.vll).as_json())
    return [each for each in differences_of(new) if each.property.name != "admin_status"]


def _text(each: Property, value: Any, ports: dict[int, Port]) -> str:
    match each.name:
        case _ if value is None:
            return "–"
        case _ if each.is_flag:
            on, off = each.words
            return str(on if value else off)
        case "eir_bps" if value == 0:
            return _("none")
        case _ if each.unit == "bit/s":
            return rate_text(value)
        case _ if each.unit == "bytes":
            return _("%(n)d bytes") % {"n": value}
        case "transport":
            return transport(value)
        case "encapsulation":
            return str(value).upper()
        case "family":
            return f"IPv{value}"
        case "port":
            return str(ports.get(value, value))
        case "tagging":
            return _(_TAGGINGS.get(value, value))
        case _:
            return str(value)


def preview_context(found: Quote, form: OrderForm) -> dict[str, Any]:
    """Return the context of orders/_feasibility.html. The refusals are added to the form."""
    for refusal in found.refusals:
        form.refuse(refusal)
    return {
        "feasibility": found,
        "reasons": _each_once(form.problems()),
        "line_request": found.spec,
        "path": _path(found),
        "needs_approval": found.needs_approval,
    }


def _each_once(problems: Iterable[Problem]) -> list[Problem]:
    """Return one problem for each field. The field itself shows all of its errors."""
    return list({problem.html_id or problem.text: problem for problem in problems}.values())


def _path(found: Quote) -> LinePath | None:
    """Return the path of the ordered line; None if it is unknown.

    If the line was refused, return the path that was checked and refused.
    """
    spec = found.spec
    transport = found.selected.transport if found.selected else _checked_transport(found)
    if transport is None or len(found.ports) < len("az"):
        return None
    try:
        frame = carried_frame(spec.svc_mtu, carried_tags=spec.carried_tags)
    except SvcMtuOutOfRange:
        return None
    routers = {side: port.router for side, port in found.ports.items()}
    return line_path(
        a=routers["a"],
        z=routers["z"],
        transport=transport,
        gre_key=transport.family in found.gre_keys,
        frame=frame,
        now=found.now,
    )


def _checked_transport(found: Quote) -> Transport | None:
    if found.spec.transport != AUTO:
        return Transport(found.spec.transport)
    # Choose the transport with the largest MTU, because the refusal is about that transport.
    carrying = [option for option in found.options if option.largest_svc_mtu is not None]
    best = max(carrying, key=lambda option: option.largest_svc_mtu or 0, default=None)
    return best.transport if best else None
