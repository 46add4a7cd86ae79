"""Pure functions that map a line to NetBox's objects: an L2VPN and two virtual interfaces."""

from dataclasses import dataclass
from typing import Any

from portal.core.network.vlan_tags import Tagging
from portal.netbox_sync.client import WITH_L2VPN_STATUS
from portal.vll.models import Vll, VllEnd
from portal.vll.states import TERMINAL_LIFECYCLES, Lifecycle

# The custom fields of L2VPNs and interfaces that identify the line and link to its page.
ID_FIELD, URL_FIELD = "longline_id", "longline_url"
# The type of L2VPNs: a pseudowire (RFC 4664). It is one of the few types of NetBox with exactly two
# terminations.
TYPE = "vpws"
_STATUS = {
    Lifecycle.PENDING_ACTIVE: "planned",
    Lifecycle.ACTIVE: "active",
    # A suspended line keeps its resources and can be resumed unchanged, so NetBox shows it as active.
    Lifecycle.SUSPENDED: "active",
    Lifecycle.PENDING_TERMINATE: "decommissioning",
    Lifecycle.TERMINATED: "decommissioning",
    Lifecycle.CANCELLED: "decommissioning",
}
_NAME = 100


@dataclass(frozen=True, slots=True)
class End:
    """A virtual interface of an end. ``device`` and ``parent`` (the port's interface) are NetBox's ids."""

    device: int
    parent: int
    name: str


def is_over(vll: Vll) -> bool:
    """Return whether the line has ended, so that its terminations and interfaces are to be removed."""
    return vll.lifecycle in TERMINAL_LIFECYCLES


def first_values(vll: Vll, base_url: str) -> dict[str, Any]:
    """Return the values that are written only when the L2VPN is created. Users may change them in NetBox."""
    # Names must be unique in NetBox. 48 bits of the id distinguish 100,000 lines with the same description.
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
    """Return the values that the portal keeps up to date: identifier, tenant, and status.

    The identifier is the VNI or the GRE key. It is None for a line without a VNI and without a GRE key.
    ``version``: NetBox's release. L2VPNs have a status from 4.3 on.
    """
    found: dict[str, Any] = {"identifier": vll.gre_key if vll.vni is None else vll.vni, "tenant": tenant}
    if version >= WITH_L2VPN_STATUS:
        found["status"] = _STATUS[Lifecycle(vll.lifecycle)]
    return found


def interface_name(end: VllEnd) -> str:
    """Return the name of an end's interface in NetBox: port, dot and VLANs, as on the router.

    For a whole port, the name is the port followed by ``.0``.
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
