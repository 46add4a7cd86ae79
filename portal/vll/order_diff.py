"""The changes of a modify order: the old and the new value of each member, and the kinds of change."""

from dataclasses import dataclass
from typing import Any

from django.db import models

from portal.vll.models import Order, Vll
from portal.vll.revision_content import LINE
from portal.vll.states import AdminStatus, OrderState


class ChangeKind(models.TextChoices):
    """The kinds of changes of a line in service."""

    DESCRIPTION = "description"
    BANDWIDTH = "bandwidth"
    SVC_MTU = "svc-mtu"
    TRANSPORT = "transport"
    ENCAPSULATION = "encapsulation"
    LINK_LOSS_FORWARDING = "link-loss-forwarding"
    VLAN = "vlan"
    MOVE_A_END = "move-a-end"
    MOVE_Z_END = "move-z-end"
    SUSPEND = "suspend"
    RESUME = "resume"
    COOLING_OFF = "cooling-off"


_KINDS = {
    "description": ChangeKind.DESCRIPTION,
    "cir_bps": ChangeKind.BANDWIDTH,
    "requested_cbs_bytes": ChangeKind.BANDWIDTH,
    "eir_bps": ChangeKind.BANDWIDTH,
    "requested_ebs_bytes": ChangeKind.BANDWIDTH,
    "svc_mtu": ChangeKind.SVC_MTU,
    "requested_transport": ChangeKind.TRANSPORT,
    "link_loss_forwarding": ChangeKind.LINK_LOSS_FORWARDING,
    "encapsulation": ChangeKind.TRANSPORT,
    "family": ChangeKind.TRANSPORT,
    "tagging": ChangeKind.ENCAPSULATION,
    "exact_match": ChangeKind.ENCAPSULATION,
    "outer_vlan": ChangeKind.VLAN,
    "inner_vlan": ChangeKind.VLAN,
}
# Members that follow from other members, or that the order itself shows, are not listed.
_LINE = tuple(name for name in LINE if name not in ("frame", "decommission_at"))
_END = ("port", "tagging", "outer_vlan", "inner_vlan", "exact_match", "tunnel_address")


@dataclass(frozen=True, slots=True)
class Difference:
    """One member of a line that an order changes.

    ``side``: "a", "z", or "" for the line itself. ``name`` and the values are as in
    portal.vll.revision_content.
    """

    side: str
    name: str
    before: Any
    after: Any


def differences_of(order: Order) -> list[Difference]:
    """Return the differences that a modify order makes to its line; nothing for any other order."""
    before, after, described = order.before or {}, order.after or {}, order.described or {}
    found = [Difference("", "description", described.get("before"), described.get("after"))]
    found += [Difference("", name, before.get(name), after.get(name)) for name in _LINE]
    for side in "az":
        was, will_be = before.get(side, {}), after.get(side, {})
        found += [Difference(side, name, was.get(name), will_be.get(name)) for name in _END]
    return [each for each in found if each.before != each.after]


def applied_cir_bps(vll: Vll, newest: Order | None) -> int:
    """Return the CIR (bit/s) that the routers have now. Until both routers confirm the newest order, this is
    the CIR before the order.

    ``newest``: the line's newest order. While this order is under way, the line's row already has the ordered
    rate.
    """
    moving = newest is not None and not newest.is_terminal and newest.state != OrderState.PENDING_APPROVAL
    before = (newest.before or {}) if newest is not None and moving else {}
    rate: int = before.get("cir_bps", vll.cir_bps)
    return rate


def change_kinds(order: Order) -> list[ChangeKind]:
    """Return the kinds of change of a modify order, in the order of ChangeKind; none for any other order."""
    found = {kind for each in differences_of(order) if (kind := _kind(order, each)) is not None}
    return [kind for kind in ChangeKind if kind in found]


def _kind(order: Order, each: Difference) -> ChangeKind | None:
    if each.name == "port":
        return ChangeKind.MOVE_A_END if each.side == "a" else ChangeKind.MOVE_Z_END
    if each.name != "admin_status":
        return _KINDS.get(each.name)
    if (order.after or {}).get("decommission_at"):
        return ChangeKind.COOLING_OFF
    return ChangeKind.RESUME if each.after == AdminStatus.UP else ChangeKind.SUSPEND
