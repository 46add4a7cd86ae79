"""The form of a line in NetBox: an L2VPN and two virtual interfaces. Pure functions."""

from dataclasses import dataclass
from typing import Any

from portal.core.vlan_tags import Tagging
from portal.netbox_sync.client import WITH_L2VPN_STATUS
from portal.vll.models import Vll, VllEnd
from portal.vll.states import TERMINAL_LIFECYCLES, Lifecycle

# Custom fields of L2VPNs and interfaces that identify an object of a line.
ID_FIELD, URL_FIELD = "longline_id", "longline_url"
# Few of NetBox's types allow exactly two terminations. This one is a pseudowire (RFC 4664).
TYPE = "vpws"
_STATUS = {
    Lifecycle.PENDING_ACTIVE: "planned",
    Lifecycle.ACTIVE: "active",
    # Its resources stay booked, and it can be resumed unchanged.
    Lifecycle.SUSPENDED: "active",
    Lifecycle.PENDING_TERMINATE: "decommissioning",
    Lifecycle.TERMINATED: "decommissioning",
    Lifecycle.CANCELLED: "decommissioning",
}
_NAME = 100


@dataclass(frozen=True, slots=True)
class End:
    """A virtual interface below the port's interface, by NetBox's ids."""

    device: int
    parent: int
    name: str


def is_over(vll: Vll) -> bool:
    """Return whether nothing of the line should end on interfaces any more."""
    return vll.lifecycle in TERMINAL_LIFECYCLES


def first_values(vll: Vll, base_url: str) -> dict[str, Any]:
    """Return the values that are written only at creation. Users of NetBox may change them afterwards."""
    # Names are unique in NetBox. 48 bits of the id distinguish 100,000 lines with the same description.
    short = str(vll.pk)[:13]
    return {
        "name": f"{vll.description or 'VLL'} ({short})"[-_NAME:],
        "slug": f"longline-{vll.pk}",
        "type": TYPE,
        "custom_fields": custom_fields(vll, base_url),
    }


def custom_fields(vll: Vll, base_url: str) -> dict[str, str]:
    """Return the custom fields that identify the line's objects and link to the line."""
    return {ID_FIELD: str(vll.pk), URL_FIELD: f"{base_url}/vlls/{vll.pk}/"}


def fields(vll: Vll, tenant: int | None, version: tuple[int, int]) -> dict[str, Any]:
    """Return the values that are kept up to date: the VNI or GRE key (null without one), tenant and
    status.
    """
    found: dict[str, Any] = {"identifier": vll.gre_key if vll.vni is None else vll.vni, "tenant": tenant}
    if version >= WITH_L2VPN_STATUS:
        found["status"] = _STATUS[Lifecycle(vll.lifecycle)]
    return found


def interface_name(end: VllEnd) -> str:
    """Return a sub-interface name in the routers' form: port, dot, VLANs; ``.0`` for an untagged whole
    port.
    """
    if end.tagging == Tagging.UNTAGGED:
        vlans = "0"
    elif end.inner_vlan is None:
        vlans = str(end.outer_vlan)
    else:
        vlans = f"{end.outer_vlan}.{end.inner_vlan}"
        # Another line may have the same two VLANs with another TPID (0x88a8 instead of 0x8100).
        vlans += "ad" if end.tagging == Tagging.DOT1AD else ""
    return f"{end.port.interface}.{vlans}"
