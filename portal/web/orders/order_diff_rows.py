"""The changes that an order requests, as table rows with the old and the new value."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.core.units import rate_text
from portal.core.vlan_tags import Tagging
from portal.inventory.models import Port
from portal.vll.models import Order
from portal.vll.operations.end_validation import EndRequest
from portal.vll.operations.line_request_check import LineRequest
from portal.vll.order_diff import Difference, differences_of
from portal.vll.revision_content import content_of
from portal.vll.states import IN_SERVICE_ACTIONS, OrderAction
from portal.web.page.units import transport

_NAMES = {
    "description": gettext_noop("Name or reference"),
    "cir_bps": gettext_noop("Bandwidth (CIR)"),
    "requested_cbs_bytes": gettext_noop("Committed burst (CBS)"),
    "eir_bps": gettext_noop("Excess bandwidth (EIR)"),
    "requested_ebs_bytes": gettext_noop("Excess burst (EBS)"),
    "svc_mtu": gettext_noop("Largest packet (MTU)"),
    "requested_transport": gettext_noop("Requested transport"),
    "link_loss_forwarding": gettext_noop("Link loss forwarding"),
    "encapsulation": gettext_noop("Encapsulation"),
    "family": gettext_noop("IP version"),
    "vni": gettext_noop("VNI"),
    "gre_key": gettext_noop("GRE key"),
    "admin_status": gettext_noop("Admin status"),
    "port": gettext_noop("Port"),
    "tagging": gettext_noop("Tagging"),
    "outer_vlan": gettext_noop("Outer VLAN"),
    "inner_vlan": gettext_noop("Inner VLAN"),
    "exact_match": gettext_noop("Exact match"),
    "tunnel_address": gettext_noop("Tunnel address"),
}
# The members of a request that an order stores under other names, and then all members of the line.
_KEPT_AS = {
    "transport": "requested_transport",
    "cbs_bytes": "requested_cbs_bytes",
    "ebs_bytes": "requested_ebs_bytes",
}
_OF_A_LINE = (
    *("cir_bps", "cbs_bytes", "eir_bps", "ebs_bytes", "svc_mtu", "transport"),
    "link_loss_forwarding",
)
_SIDES = {"a": gettext_noop("A end"), "z": gettext_noop("Z end")}
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
        return f"{_(_SIDES[self.side])}: {self.label}" if self.side else self.label


def diff_rows_of(order: Order) -> list[DiffRow]:
    """Return the rows of an order: all values of a new line, or the changed values of an existing line."""
    return _diff_rows(differences_of(order) if order.action in IN_SERVICE_ACTIONS else _all_of(order))


def diff_rows_between(
    before: LineRequest, after: LineRequest, *, vlans: Mapping[str, int | None]
) -> list[DiffRow]:
    """Return the differences between two requests for the same line.

    ``vlans``: the current outer VLAN of each end. It replaces "any" in ``before``.
    """
    found = [
        Difference("", _KEPT_AS.get(name, name), getattr(before, name), getattr(after, name))
        for name in _OF_A_LINE
    ]
    for side, end in before.ends.items():
        now = replace(end, outer_vlan=vlans[side])
        wanted = now if after.ends[side] == end else after.ends[side]
        found += [
            Difference(side, name, getattr(now, name), getattr(wanted, name)) for name in EndRequest.__slots__
        ]
    return _diff_rows([each for each in found if each.before != each.after])


def _diff_rows(found: list[Difference]) -> list[DiffRow]:
    ports = Port.objects.select_related("router").in_bulk(
        {value for each in found if each.name == "port" for value in (each.before, each.after) if value}
    )
    return [
        DiffRow(
            each.side,
            _(_NAMES[each.name]),
            _text(each.name, each.before, ports),
            _text(each.name, each.after, ports),
        )
        for each in found
    ]


def _all_of(order: Order) -> list[Difference]:
    new = Order(action=OrderAction.MODIFY, before={}, after=content_of(order.vll).as_json())
    return [each for each in differences_of(new) if each.name != "admin_status"]


def _text(name: str, value: Any, ports: dict[int, Port]) -> str:
    match name:
        case _ if value is None:
            return "–"
        case "eir_bps" if value == 0:
            return _("none")
        case "cir_bps" | "eir_bps":
            return rate_text(value)
        case "svc_mtu" | "requested_cbs_bytes" | "requested_ebs_bytes":
            return _("%(n)d bytes") % {"n": value}
        case "requested_transport":
            return transport(value)
        case "encapsulation":
            return str(value).upper()
        case "family":
            return f"IPv{value}"
        case "port":
            return str(ports.get(value, value))
        case "tagging":
            return _(_TAGGINGS.get(value, value))
        case "link_loss_forwarding":
            return _("on") if value else _("off")
        case "exact_match":
            return _("yes") if value else _("no")
        case _:
            return str(value)
