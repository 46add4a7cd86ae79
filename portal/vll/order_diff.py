"""The changes of a line: the old and the new value of each property, and the kinds of change."""

from dataclasses import dataclass
from typing import Any

from portal.vll.line_revision import ALLOCATED_END, REVISION
from portal.vll.line_spec import END, LINE, ChangeKind, LineSpec, Property
from portal.vll.models import Order, Vll
from portal.vll.states import AdminStatus, OrderState

_DESCRIPTION = LINE[0]
_VLAN = next(each for each in ALLOCATED_END if each.name == "vlan")
# An order shows the allocated VLAN at the place of the requested one.
_OF_END = tuple(_VLAN if each.name == "outer_vlan" else each for each in ALLOCATED_END if each is not _VLAN)


@dataclass(frozen=True, slots=True)
class Difference:
    """A property that changes, with its stored values. ``side``: "a", "z", or "" for the line itself."""

    side: str
    property: Property
    before: Any
    after: Any


def differences_of(order: Order) -> list[Difference]:
    """Return the differences that a modify order makes to its line; nothing for any other order."""
    before, after, described = order.before or {}, order.after or {}, order.described or {}
    found = [Difference("", _DESCRIPTION, described.get("before"), described.get("after"))]
    found += [Difference("", each, before.get(each.column), after.get(each.column)) for each in REVISION]
    for side in "az":
        was, will_be = before.get(side, {}), after.get(side, {})
        found += [Difference(side, each, was.get(each.column), will_be.get(each.column)) for each in _OF_END]
    return [each for each in found if each.before != each.after and each.property.label is not None]


def differences_between(before: LineSpec, after: LineSpec) -> list[Difference]:
    """Return the differences between two specifications of the same line, apart from the description."""
    found = [
        Difference("", each, getattr(before, each.name), getattr(after, each.name))
        for each in LINE
        if each is not _DESCRIPTION
    ]
    for side, end in before.ends.items():
        wanted = after.ends[side]
        found += [Difference(side, each, getattr(end, each.name), getattr(wanted, each.name)) for each in END]
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
    if each.property.name == "port":
        return ChangeKind.MOVE_A_END if each.side == "a" else ChangeKind.MOVE_Z_END
    if each.property.name != "admin_status":
        return each.property.change
    if (order.after or {}).get("decommission_at"):
        return ChangeKind.COOLING_OFF
    return ChangeKind.RESUME if each.after == AdminStatus.UP else ChangeKind.SUSPEND
