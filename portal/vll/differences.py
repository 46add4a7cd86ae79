"""What a modify order changes: from what to what, member by member."""

from dataclasses import dataclass
from typing import Any

from portal.vll.models import Order

_LINE = ("svc_mtu", "cir_bps", "requested_transport", "encapsulation", "family", "vni", "admin_status")
_END = ("port", "tagging", "outer_vlan", "inner_vlan", "exact_match", "tunnel_address")


@dataclass(frozen=True, slots=True)
class Difference:
    """``side``: "a", "z", or "" for the line itself; ``name`` and values as in portal.vll.content."""

    side: str
    name: str
    before: Any
    after: Any


def differences_of(order: Order) -> list[Difference]:
    """What a modify order makes of its line; nothing for any other order."""
    before, after = order.before or {}, order.after or {}
    found = [Difference("", name, before.get(name), after.get(name)) for name in _LINE]
    for side in "az":
        was, will_be = before.get(side, {}), after.get(side, {})
        found += [Difference(side, name, was.get(name), will_be.get(name)) for name in _END]
    return [each for each in found if each.before != each.after]
