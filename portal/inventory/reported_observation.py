"""An agent's report of its router (docs/reference/agent-reports.md), decoded from JSON in one pass."""

from collections.abc import Iterator
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any, Literal, NoReturn

from msgspec import Meta, Struct, field
from msgspec.structs import asdict, force_setattr

from portal.core.clock import to_time
from portal.core.network.bandwidth_profile import Policing
from portal.core.network.encapsulations import Encapsulation
from portal.core.network.path_bfd import PathState
from portal.core.network.vlan_tags import MANY_TAGS
from portal.core.strict_json import (
    Address,
    EpochMs,
    Etag,
    ForeignName,
    ForeignText,
    Natural31,
    Natural53,
    Positive31,
    Positive63,
    PrefixedAddress,
    PrintableText,
    Uuid,
    json_digest,
    require_unique,
)
from portal.inventory.kinds import is_interface_name

# _Few limits lists of objects of VPP and of the agent's files. _Many limits lists of a router's lines, routes
# and interfaces.
_Few = Meta(max_length=1000)
_Many = Meta(max_length=100_000)
# The number of a FIB table; VPP uses 2^32 - 1 for an unknown one.
Table = Annotated[int, Meta(ge=0, le=2**32 - 1)]


class ListNotReported(LookupError):
    """The report contains only the digest of a list, and the caller needs its items."""


class ListName(Struct, frozen=True, forbid_unknown_fields=True):
    """The digest of a list that an earlier report contained. Reading the items raises ``ListNotReported``."""

    etag: Etag

    def __iter__(self) -> Iterator[NoReturn]:
        raise ListNotReported(self.etag)


class LoadReport(Struct, frozen=True, forbid_unknown_fields=True):
    """The load of an interface over the last interval; ``speed_bps`` None: unknown."""

    rx_bps: Natural53
    tx_bps: Natural53
    speed_bps: Annotated[int, Meta(ge=1, le=2**53)] | None


class FramesReport(Struct, frozen=True, forbid_unknown_fields=True):
    """The frames that a sub-interface takes from its port (portal.core.network.vlan_tags.Frames)."""

    dot1ad: bool | None
    outer: Annotated[int, Meta(ge=0, le=4095)] | None
    inner: Annotated[int, Meta(ge=0, le=4095)] | None
    least_tags: Annotated[int, Meta(ge=0, le=MANY_TAGS)]
    most_tags: Annotated[int, Meta(ge=0, le=MANY_TAGS)]


class InterfaceReport(Struct, frozen=True, forbid_unknown_fields=True):
    """An interface that the agent did not create. ``addresses`` with prefix lengths, ``ip_mtu`` in bytes.

    ``tables``: the FIB tables of its IPv4 and its IPv6 addresses. ``linux_cp``: the Linux interface that it
    is paired with. ``load``: None if unknown. ``parent``: the port of a sub-interface. ``frames``: the frames
    that a sub-interface takes from the port. ``parent`` and ``frames`` are None for other interfaces, and
    from agents that do not report them.
    """

    name: str
    sw_if_index: Annotated[int, Meta(ge=0, le=2**32 - 1)]
    admin_up: bool
    link_up: bool
    ip_mtu: Natural31 | None
    addresses: Annotated[tuple[PrefixedAddress, ...], _Few]
    tag: ForeignName | None
    tables: tuple[Table, Table] = (0, 0)
    linux_cp: ForeignName | None = None
    parent: ForeignName | None = None
    frames: FramesReport | None = None
    load: LoadReport | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """Return the columns that are stored with the interface.

        Of the load, only the speed is stored with the interface, because the rates change with each report.
        Without a load, the stored speed stays.
        """
        facts = {
            "admin_up": self.admin_up,
            "link_up": self.link_up,
            "ip_mtu": self.ip_mtu,
            "linux_cp": self.linux_cp or "",
            "parent": self.parent or "",
            "frames": None if self.frames is None else asdict(self.frames),
        }
        return facts if self.load is None else facts | {"speed_bps": self.load.speed_bps}


class RouteReport(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether the best route to a tunnel address is not a drop."""

    address: Address
    reachable: bool


class Difference(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of an end. Its state in VPP differs from its state in the intent."""

    object: ForeignText
    field: ForeignText
    desired: ForeignText
    actual: ForeignText


class Contest(Difference, frozen=True, forbid_unknown_fields=True):
    """A difference that another program makes again after each repair."""

    since_ms: EpochMs
    repairs: Positive31


class PathReport(Struct, frozen=True, forbid_unknown_fields=True):
    """A watched path to another router's tunnel address. ``foreign``: its BFD session is not the agent's."""

    local: Address
    remote: Address
    state: PathState
    since_ms: EpochMs
    foreign: bool = False
    detail: ForeignText | None = None


class WatchReport(Struct, frozen=True, forbid_unknown_fields=True):
    """The BFD settings of the agent's intent."""

    interval_ms: Positive31
    multiplier: Positive31


class EndPath(Struct, frozen=True, forbid_unknown_fields=True):
    """The state of the path of an end's tunnel, and its start by the agent's clock."""

    state: PathState
    since_ms: EpochMs


class VlanLoss(Struct, frozen=True, forbid_unknown_fields=True):
    """A loss at an end: VPP drops frames although they have the end's VLAN. ``since_ms``: when frames last
    arrived.

    ``not_examined``: the loss is not confirmed, because VPP's tracer could not be used. ``dropped``: the
    tracer showed the loss, and the sub-interface is not rebuilt yet. ``rebuilt``: the sub-interface is
    rebuilt, and no frame has arrived yet. ``not_restored``: after the rebuild, no frame arrived in time. Only
    an operator can request another rebuild.
    """

    state: Literal["not_examined", "dropped", "rebuilt", "not_restored"]
    since_ms: EpochMs
    detail: ForeignText


class EndObservation(Struct, frozen=True, forbid_unknown_fields=True):
    """An agent's observation of one VLL end; ``reachable`` is None for a local cross-connect.

    ``path``: None if it is not watched. ``shut_down``: the agent keeps the port shut down because of the
    far end's link.
    """

    vll: Uuid
    side: Literal["a", "z"] = field(name="end")
    revision: Positive31
    link_up: bool
    reachable: bool | None
    in_sync: bool
    drift: Annotated[tuple[Difference, ...], _Few]
    policed: bool = False
    contested: Annotated[tuple[Contest, ...], _Few] = ()
    path: EndPath | None = None
    shut_down: bool = field(name="held_down", default=False)
    vlan_loss: VlanLoss | None = None


class AttachmentReport(Struct, frozen=True, forbid_unknown_fields=True):
    """A foreign attachment circuit. A whole port has no tags. ``link_up``: the state of the port's link.

    ``wide``: the circuit is not exact-match, as with VPP's "any" and "default".
    """

    port: ForeignName
    link_up: bool
    tags: Annotated[int, Meta(ge=0, le=2)]
    dot1ad: bool
    outer: Annotated[int, Meta(ge=0, le=4095)]
    inner: Annotated[int, Meta(ge=0, le=4095)]
    exact: bool
    wide: bool
    policed: bool


class TunnelReport(Struct, frozen=True, forbid_unknown_fields=True):
    """A foreign tunnel. ``standard``: whether it has the UDP port and mode that agents use."""

    encapsulation: Literal["vxlan", "geneve", "gre"]
    local: Address
    remote: Address
    vni: Annotated[int, Meta(ge=0, le=2**24 - 1)] | None
    gre_key: Annotated[int, Meta(ge=0, le=2**32 - 1)] | None
    standard: bool
    table: Table = 0


class CircuitSide(Struct, frozen=True, forbid_unknown_fields=True):
    """One side of a circuit: an attachment circuit or a tunnel. ``rewrite``: VPP's operation, 0 for none."""

    interface: ForeignName
    tag: ForeignName | None
    admin_up: bool
    rewrite: Annotated[int, Meta(ge=0, le=255)]
    attachment: AttachmentReport | None
    tunnel: TunnelReport | None


class CircuitReport(Struct, frozen=True, forbid_unknown_fields=True):
    """A foreign cross-connect. ``far`` None: ``near`` is a tunnel without a cross-connect.

    ``out``: frames from ``near`` are sent to ``far``; ``in``: the other direction.
    """

    near: CircuitSide
    far: CircuitSide | None
    out: bool
    back: bool = field(name="in")


class SetAsideReport(Struct, frozen=True, forbid_unknown_fields=True):
    """A file that the agent could not use, by its path on the router."""

    file: ForeignText
    why: ForeignText


class FreezeReport(Struct, frozen=True, forbid_unknown_fields=True):
    """A freeze that the agent keeps. ``over``: it has ended, and its differences await acknowledgement."""

    id: Uuid
    by: Literal["portal", "router"]
    reason: ForeignText
    since_ms: EpochMs
    until_ms: EpochMs
    over: bool


class VppVersion(ForeignText):
    """The name and version that VPP reports."""

    longest = 100


class VppReport(Struct, frozen=True, forbid_unknown_fields=True):
    """The state of VPP. ``boot_ms``: its start by VPP's clock. ``plugins``: the loaded ones; None: unknown.

    ``absent``: no VPP runs. A VPP that runs but does not respond may forward. ``hangs``: VPP accepts
    connections and does not respond.
    """

    connected: bool
    version: VppVersion | None
    boot_ms: EpochMs | None
    simulated: bool | None
    workers: Annotated[int, Meta(ge=0, le=1024)] | None
    plugins: Annotated[list[ForeignName], _Few] | None = None
    absent: bool = False
    hangs: bool = False

    @property
    def booted_at(self) -> datetime | None:
        return None if self.boot_ms is None else to_time(self.boot_ms)


class GenerationReport(Struct, frozen=True, forbid_unknown_fields=True):
    """The generations of the intents that the agent has stored and applied; None without such an intent."""

    stored: Positive63 | None = field(name="held")
    applied: Positive63 | None


class ObservedReport(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, dict=True):
    """One report. ``sent_ms``: the time by the agent's clock.

    * ``look``: the number of the agent's read of VPP. Reads for responses to the portal have numbers of the
      same series. None: not reported.
    * ``line_tests``: VPP can send test frames.
    * ``gre_keys``: VPP distinguishes GRE tunnels by keys.
    * ``underlay_tables``: the agent creates tunnels in the requested table.
    * ``path_watch``: VPP has multihop BFD. ``watching``: None if the stored intent has no watched path.
    * ``probes``: the agent accepts tunnels without an access, for test frames.
    * ``adoption``: whether the agent takes over foreign lines; "": it does not support adoption.
    * ``labels``: the agent wants the labels of lines, for SNMP.
    * ``freezes``: the agent supports freezes. ``freeze``: the freeze that it keeps, or None.
    * ``link_loss_forwarding``: the agent can shut a port down because of the far end's link.
    """

    boot_id: Uuid
    sent_ms: Natural53
    agent_version: PrintableText
    vpp: VppReport
    encapsulations: Annotated[list[Encapsulation], Meta(max_length=len(Encapsulation))]
    generation: GenerationReport
    interfaces: Annotated[tuple[InterfaceReport, ...], _Many]
    routes: Annotated[tuple[RouteReport, ...], _Many] | ListName
    ends: Annotated[tuple[EndObservation, ...], _Many] | ListName
    policing: Policing = Policing.NONE
    line_tests: bool = False
    gre_keys: bool = False
    underlay_tables: bool = False
    path_watch: bool = False
    watching: WatchReport | None = None
    paths: Annotated[tuple[PathReport, ...], _Many] = ()
    probes: bool = False
    adoption: Literal["", "refused", "allowed"] = ""
    look: Natural53 | None = None
    circuits: Annotated[tuple[CircuitReport, ...], _Many] | ListName = ()
    set_aside: Annotated[tuple[SetAsideReport, ...], Meta(max_length=100)] = ()
    labels: bool = False
    freezes: bool = False
    freeze: FreezeReport | None = None
    link_loss_forwarding: bool = False

    def __post_init__(self) -> None:
        require_unique(self.interfaces, "name", at="/interfaces")
        # Skip interfaces whose names no port or link can have, because no query would use them.
        named = tuple(each for each in self.interfaces if is_interface_name(each.name))
        force_setattr(self, "interfaces", named)

    @cached_property
    def digests(self) -> dict[str, str]:
        """Return the digests of the parts, which identify unchanged parts of the next report."""
        interfaces = [(each.name, each.columns, each.addresses, each.tables) for each in self.interfaces]
        return {
            "interfaces": json_digest(interfaces),
            "routes": _digest_of(self.routes),
            "ends": _digest_of(self.ends),
            "paths": _digest_of(self.paths),
            "circuits": _digest_of(self.circuits),
        }


def _digest_of(items: tuple[Struct, ...] | ListName) -> str:
    return items.etag if isinstance(items, ListName) else json_digest(items)
