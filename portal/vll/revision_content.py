"""The content of one revision of a VLL: a value to compare, to store with an order, and to restore."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Self

from portal.core.encapsulations import Encapsulation, Transport
from portal.core.vlan_tags import Tagging
from portal.vll.models import Vll, VllEnd

LINE = (
    "svc_mtu",
    "cir_bps",
    "requested_cbs_bytes",
    "eir_bps",
    "requested_ebs_bytes",
    "requested_transport",
    "link_loss_forwarding",
    "encapsulation",
    "family",
    "vni",
    "gre_key",
    "frame",
    "admin_status",
    "decommission_at",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndContent:
    """One end as requested and allocated; ``port`` is the port's id."""

    port: int
    tagging: Tagging
    requested_outer_vlan: int | None
    outer_vlan: int | None
    inner_vlan: int | None
    exact_match: bool
    tunnel_address: str | None

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Self:
        return cls(**kept | {"tagging": Tagging(kept["tagging"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A whole revision. ``svc_mtu``, ``frame`` and bursts in bytes, rates in bit/s."""

    svc_mtu: int
    cir_bps: int
    requested_transport: str
    encapsulation: str
    family: int | None
    vni: int | None
    frame: int
    admin_status: str
    decommission_at: datetime | None
    # Orders that were stored by earlier releases do not have these members.
    eir_bps: int = 0
    requested_cbs_bytes: int | None = None
    requested_ebs_bytes: int | None = None
    gre_key: int | None = None
    link_loss_forwarding: bool = False
    a: EndContent
    z: EndContent

    @property
    def ends(self) -> dict[str, EndContent]:
        """Return the ends by their side."""
        return {"a": self.a, "z": self.z}

    @property
    def transport(self) -> Transport:
        """Return the allocated transport."""
        return Transport.of(Encapsulation(self.encapsulation), self.family)

    @property
    def gre_pair(self) -> tuple[str, str] | None:
        """Return the address pair of a GRE tunnel without a key.

        No other tunnel without a key may use the pair.
        """
        a_address, z_address = self.a.tunnel_address, self.z.tunnel_address
        if self.encapsulation != Encapsulation.GRE or self.gre_key is not None:
            return None
        if a_address is None or z_address is None:
            return None
        return a_address, z_address

    @property
    def line(self) -> dict[str, Any]:
        """Return the values of the Vll's columns."""
        return {name: getattr(self, name) for name in LINE}

    def as_json(self) -> dict[str, Any]:
        """Return the content for a JSON column; ``from_json`` reads it."""
        at = self.decommission_at
        return asdict(self) | {"decommission_at": None if at is None else at.isoformat()}

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Self:
        at = kept["decommission_at"]
        ends = {side: EndContent.from_json(kept[side]) for side in "az"}
        return cls(**kept | ends | {"decommission_at": None if at is None else datetime.fromisoformat(at)})


def content_of(vll: Vll) -> Content:
    """Return the content of the VLL's present revision."""
    ends = {end.side: _end(end) for end in vll.ends.all()}
    line: dict[str, Any] = {name: getattr(vll, name) for name in LINE}
    return Content(**line, a=ends["a"], z=ends["z"])


def _end(end: VllEnd) -> EndContent:
    return EndContent(
        port=end.port_id,
        tagging=Tagging(end.tagging),
        requested_outer_vlan=end.requested_outer_vlan,
        outer_vlan=end.outer_vlan,
        inner_vlan=end.inner_vlan,
        exact_match=end.exact_match,
        tunnel_address=end.tunnel_address,
    )
