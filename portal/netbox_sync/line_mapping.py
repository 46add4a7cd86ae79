"""A line in NetBox: an L2VPN and two virtual interfaces. Pure."""

from dataclasses import dataclass
from typing import Any

from portal.core.vlan_tags import Tagging
from portal.netbox_sync.client import WITH_L2VPN_STATUS
from portal.vll.models import Vll, VllEnd
from portal.vll.states import TERMINAL_LIFECYCLES, Lifecycle

# Custom fields of L2VPNs and interfaces, by which an object is known to be a line's.
ID_FIELD, URL_FIELD = "longline_id", "longline_url"
# Types of NetBox that hold exactly two terminations are few; of these, this is a pseudowire (RFC 4664).
TYPE = "vpws"
_STATUS = {
    Lifecycle.PENDING_ACTIVE: "planned",
    Lifecycle.ACTIVE: "active",
    # Its resources stay booked, and it comes back as it was.
    Lifecycle.SUSPENDED: "active",
    Lifecycle.PENDING_TERMINATE: "decommissioning",
    Lifecycle.TERMINATED: "decommissioning",
    Lifecycle.CANCELLED: "decommissioning",
}
_NAME = 100


@dataclass(frozen=True, slots=True)
class End:
    """A virtual interface below the port's, as NetBox's ids name both."""

    device: int
    parent: int
    name: str


def is_over(vll: Vll) -> bool:
    """Whether nothing of it is to end on interfaces any more."""
    return vll.lifecycle in TERMINAL_LIFECYCLES


def first_values(vll: Vll, base_url: str) -> dict[str, Any]:
    """The values that are written once, when the L2VPN is made, and are NetBox's people's from then on."""
    # Names are unique in NetBox: 48 bits of the id keep 100,000 lines of one description apart.
    short = str(vll.pk)[:13]
    return {
        "name": f"{vll.description or 'VLL'} ({short})"[-_NAME:],
        "slug": f"longline-{vll.pk}",
        "type": TYPE,
        "custom_fields": custom_fields(vll, base_url),
    }


def custom_fields(vll: Vll, base_url: str) -> dict[str, str]:
    """By which the line's objects are found again, and lead back."""
    return {ID_FIELD: str(vll.pk), URL_FIELD: f"{base_url}/vlls/{vll.pk}/"}


def fields(vll: Vll, tenant: int | None, version: tuple[int, int]) -> dict[str, Any]:
    """The values that are kept up to date: the VNI or GRE key (null where there is none), tenant, status."""
    found: dict[str, Any] = {"identifier": vll.gre_key if vll.vni is None else vll.vni, "tenant": tenant}
    if version >= WITH_L2VPN_STATUS:
        found["status"] = _STATUS[Lifecycle(vll.lifecycle)]
    return found


def interface_name(end: VllEnd) -> str:
    """As routers name sub-interfaces: the port's name, a dot, the VLANs; ``.0`` for the untagged whole."""
    if end.tagging == Tagging.UNTAGGED:
        vlans = "0"
    elif end.inner_vlan is None:
        vlans = str(end.outer_vlan)
    else:
        vlans = f"{end.outer_vlan}.{end.inner_vlan}"
        # The same two VLANs may be another line's, by another tag protocol (0x88a8 instead of 0x8100).
        vlans += "ad" if end.tagging == Tagging.DOT1AD else ""
    return f"{end.port.interface}.{vlans}"
