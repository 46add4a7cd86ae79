"""All rules of a line in one check. Orders enforce the rules, and validation reports them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.conf import settings

from portal.accounts.models import Customer, User
from portal.allocation.calibrated_weights import weights_of
from portal.allocation.cpu_core_bookings import EndLoad, cores_refusals
from portal.allocation.errors import RouterFull
from portal.allocation.router_packet_capacity import end_load
from portal.core.encapsulations import AUTO_TUNNELS, Family, Transport
from portal.core.errors import DomainError
from portal.core.required_mtu import ETHERNET_HEADER, VLAN_TAG, carried_frame, uni_frame
from portal.core.vlan_tags import carried_tags
from portal.inventory.models import Port, Router
from portal.underlay.errors import TransportRefused
from portal.underlay.topology_cache import current_topology, line_ends, path_policy
from portal.underlay.transport_selection import SelectedTransport, select_transport
from portal.underlay.tunnel_endpoints import barred
from portal.vll.errors import CirOutOfRange, FrameTooLargeForPort, PortUnknown
from portal.vll.gre_key_rules import gre_key_families
from portal.vll.operations.bandwidth_profile_rules import profile_refusals
from portal.vll.operations.end_validation import (
    EndRequest,
    check_distinct,
    check_end,
    check_owner,
    check_router,
    customer_of,
    end_request_of,
    ports_of,
)
from portal.vll.operations.link_loss_order_rules import link_loss_refusals
from portal.vll.revision_content import Content

AUTO = "auto"
# 1 Tbit/s: faster than any port.
MAX_CIR_BPS = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRequest:
    """A requested line.

    ``svc_mtu`` and bursts are in bytes, rates in bit/s. The portal chooses bursts that are None.
    ``transport``: ``auto`` or the value of a Transport.
    """

    a_end: EndRequest
    z_end: EndRequest
    svc_mtu: int
    cir_bps: int
    transport: str
    eir_bps: int = 0
    cbs_bytes: int | None = None
    ebs_bytes: int | None = None
    link_loss_forwarding: bool = False

    @property
    def ends(self) -> dict[str, EndRequest]:
        """Return the ends by their side."""
        return {"a": self.a_end, "z": self.z_end}

    @property
    def carried_tags(self) -> int:
        """Return the number of tags inside the tunnel."""
        return carried_tags((end.tagging, end.exact_match) for end in self.ends.values())

    @property
    def largest_uni_frame(self) -> int:
        """Return the size in bytes of the largest frame at the UNI whose tagging has more tags.

        ``svc_mtu`` may be out of range.
        """
        tags = self.carried_tags + max(end.tagging.selecting_tags for end in self.ends.values())
        return self.svc_mtu + ETHERNET_HEADER + VLAN_TAG * tags


def request_of(content: Content) -> LineRequest:
    """Return the request that would order this content again."""
    return LineRequest(
        a_end=end_request_of(content.a),
        z_end=end_request_of(content.z),
        svc_mtu=content.svc_mtu,
        cir_bps=content.cir_bps,
        transport=content.requested_transport,
        eir_bps=content.eir_bps,
        cbs_bytes=content.requested_cbs_bytes,
        ebs_bytes=content.requested_ebs_bytes,
        link_loss_forwarding=content.link_loss_forwarding,
    )


@dataclass(frozen=True, slots=True)
class Accepted:
    """A request that breaks no rule, with the resolved values; ``ports`` by side.

    ``passed_over``: the full router cores that made ``auto`` replace the line's transport, if any.
    """

    request: LineRequest
    customer: Customer
    ports: dict[str, Port]
    selected: SelectedTransport
    passed_over: tuple[RouterFull, ...] = ()


@dataclass(slots=True)
class LineCheck:
    """The result of a check: ``refusals`` in the order of the rules, ``ports`` that the user may see."""

    ends: Mapping[str, EndRequest]
    refusals: list[DomainError] = field(default_factory=list)
    ports: dict[str, Port] = field(default_factory=dict)
    customer: Customer | None = None
    selected: SelectedTransport | None = None
    passed_over: list[RouterFull] = field(default_factory=list)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Collect the refusals raised inside, and continue."""
        try:
            yield
        except TransportRefused as refusal:
            self.refusals += [refusal, *refusal.also]
        except DomainError as refusal:
            self.refusals.append(refusal)

    def tags_refused(self, side: str) -> bool:
        """Return whether the VLANs of this end do not fit its tagging."""
        names = {f"{side}_end.{name}" for name in ("outer_vlan", "inner_vlan", "exact_match")}
        return any(refusal.field in names for refusal in self.refusals)

    @property
    def can_end(self) -> bool:
        """Return whether both ports are known and VLLs can end on their routers."""
        return len(self.ports) == 2 and all(port.router.has_agent for port in self.ports.values())

    def owned(self) -> Customer:
        """Return the customer of the line; raise the first refusal if there is any."""
        if self.refusals:
            raise self.refusals[0]
        assert self.customer is not None  # noqa: S101 - no rule was broken, so every rule was checked
        return self.customer

    def accepted(self, request: LineRequest) -> Accepted:
        """Return the accepted request; raise the first refusal if there is any."""
        customer = self.owned()
        assert self.selected is not None  # noqa: S101 - as above
        return Accepted(request, customer, self.ports, self.selected, tuple(self.passed_over))


def check_line(
    *,
    user: User,
    request: LineRequest,
    now: datetime,
    lock: bool,
    owner: Customer | None = None,
    line: Content | None = None,
    in_service: Content | None = None,
    preferred: Transport | None = None,
    unchanged_path: SelectedTransport | None = None,
    more_ports: Iterable[int] = (),
    own: Collection[UUID] = (),
) -> LineCheck:
    """Check every rule whose prerequisites are met. Writes nothing.

    ``lock``: lock the ports, for a caller who is about to lease. ``more_ports``: other ports to lock, which
    the caller writes later. For an existing line, ``owner`` is its customer, ``line`` its leased content and
    ``in_service`` the content on its routers. ``preferred``: the transport that ``auto`` keeps while it fits.
    ``unchanged_path``: the transport of a path that is already in use and needs no further check of the
    underlay. ``own``: the owners whose bookings on the routers the line may reuse.
    """
    found = check_ports(
        user=user,
        ends=request.ends,
        cir_bps=request.cir_bps,
        lock=lock,
        owner=owner,
        more_ports=more_ports,
        booked_bps=line.cir_bps if line else None,
    )
    fits_a_frame = False
    with found.noting():
        carried_frame(request.svc_mtu, carried_tags=request.carried_tags)
        fits_a_frame = True
    if found.can_end:
        if unchanged_path is not None and unchanged_path.gre_key and not _both_have_gre_keys(found.ports):
            unchanged_path = None
        if fits_a_frame:
            with found.noting():
                found.selected = _selected(found, request, line, preferred, unchanged_path, own, now)
        transport = likely_transport(found, request)
        found.refusals += _check_cores(found.ports, request.cir_bps, transport, own)
    for side, port in found.ports.items() if fits_a_frame else ():
        with found.noting():
            _check_frame(port, side, request)
    found.refusals += profile_refusals(
        cir_bps=request.cir_bps,
        eir_bps=request.eir_bps,
        cbs_bytes=request.cbs_bytes,
        ebs_bytes=request.ebs_bytes,
        frame=request.largest_uni_frame,
        ports=found.ports,
    )
    if request.link_loss_forwarding:
        found.refusals += link_loss_refusals(ends=request.ends, ports=found.ports, in_service=in_service)
    return found


def check_ports(
    *,
    user: User,
    ends: Mapping[str, EndRequest],
    cir_bps: int,
    lock: bool,
    owner: Customer | None = None,
    more_ports: Iterable[int] = (),
    booked_bps: int | None = None,
) -> LineCheck:
    """Check only the rules of the two ends and of the rate (bit/s). A reservation needs no other rules.

    ``booked_bps``: the rate of an existing line, which the line may keep even if the minimum rate is higher
    now.
    """
    found = LineCheck(ends)
    least = settings.LONGLINE_MIN_CIR_BPS
    with found.noting():
        if not least <= cir_bps <= MAX_CIR_BPS and cir_bps != booked_bps:
            raise CirOutOfRange(value=cir_bps, minimum=least, maximum=MAX_CIR_BPS)
    for side, end in ends.items():
        with found.noting():
            check_end(end, side=side)
    visible = ports_of(user, {*more_ports, *(end.port for end in ends.values())}, lock=lock)
    for side, end in ends.items():
        with found.noting():
            if end.port not in visible:
                raise PortUnknown(field=f"{side}_end.port", port=end.port)
            found.ports[side] = visible[end.port]
            check_owner(found.ports[side], side=side, owner=owner)
    if len(found.ports) == 2:
        if all(port.customer is not None for port in found.ports.values()):
            with found.noting():
                found.customer = customer_of(user, found.ports)
        if not any(found.tags_refused(side) for side in ends):
            with found.noting():
                check_distinct(found.ports, ends["a"], ends["z"])
    for side, port in found.ports.items():
        with found.noting():
            check_router(port, side=side)
    return found


def _check_frame(port: Port, side: str, request: LineRequest) -> None:
    frame = uni_frame(request.svc_mtu, tagging=request.ends[side].tagging, carried_tags=request.carried_tags)
    if frame > port.max_frame:
        raise FrameTooLargeForPort(
            field=f"{side}_end.port",
            port=str(port),
            frame=frame,
            max_frame=port.max_frame,
            largest_svc_mtu=request.svc_mtu - (frame - port.max_frame),
        )


def _selected(
    found: LineCheck,
    request: LineRequest,
    line: Content | None,
    preferred: Transport | None,
    unchanged_path: SelectedTransport | None,
    own: Collection[UUID],
    now: datetime,
) -> SelectedTransport:
    """Return the transport for the request.

    A line with ``auto`` keeps its transport while the routers' cores suffice for it. Otherwise ``auto``
    chooses again: the cheapest transport that fits, apart from GRE. GRE may be cheaper, but ``auto`` takes
    GRE only if nothing else fits.
    """
    if request.transport != AUTO:
        return unchanged_path or carried_by(found.ports, request, Transport(request.transport), line, now)
    if unchanged_path is not None or preferred is not None:
        try:
            kept = unchanged_path or carried_by(found.ports, request, preferred, line, now)
        except TransportRefused:
            pass  # auto chooses below
        else:
            full = _check_cores(found.ports, request.cir_bps, kept.transport, own)
            if not full:
                return kept
            found.passed_over = full
    return carried_by(found.ports, request, None, line, now)


def likely_transport(found: LineCheck, request: LineRequest) -> Transport:
    """Return the transport that the check selected.

    If no transport fits, return the requested one, or the first that auto tries.
    """
    if found.selected is not None:
        return found.selected.transport
    if request.transport != AUTO:
        return Transport(request.transport)
    local = found.ports["a"].router_id == found.ports["z"].router_id
    return Transport.L2XC if local else AUTO_TUNNELS[0]


def _check_cores(
    ports: Mapping[str, Port], cir_bps: int, transport: Transport, own: Collection[UUID]
) -> list[RouterFull]:
    ends = core_loads(ports, cir_bps=cir_bps, transport=transport)
    return cores_refusals(ends=ends, transport=transport, own=own)


def _both_have_gre_keys(ports: Mapping[str, Port]) -> bool:
    return all(end.gre_keys for end in line_ends(ports["a"].router, ports["z"].router))


def carried_by(
    ports: Mapping[str, Port],
    request: LineRequest,
    transport: Transport | None,
    line: Content | None,
    now: datetime,
) -> SelectedTransport:
    """Return the transport that carries the request between these ports.

    ``transport`` None lets ``auto`` choose. ``line``: the present content of the line; None for a new line.
    Raises a TransportRefused.
    """
    a_router, z_router = ports["a"].router, ports["z"].router
    between = line_ends(a_router, z_router)
    gre_keys = gre_key_families(*between, line=line, ports=ports)
    return select_transport(
        current_topology(now=now),
        a_router.pk,
        z_router.pk,
        a_families=families(a_router),
        z_families=families(z_router),
        svc_mtu=request.svc_mtu,
        carried_tags=request.carried_tags,
        requested=transport,
        policy=path_policy(),
        barred=barred(*between, Transport, gre_keys=gre_keys),
        gre_keys=gre_keys,
    )


def families(router: Router) -> list[Family]:
    """Return the address families for which the router has a tunnel endpoint."""
    return [family for family in Family if router.loopback(family)]


def core_loads(ports: Mapping[str, Port], *, cir_bps: int, transport: Transport) -> dict[str, EndLoad]:
    """Return the core loads that the ends of a line on these ports would add to their routers."""
    return {
        side: EndLoad(router=port.router, load=end_load(cir_bps, transport, weights_of(port.router)))
        for side, port in ports.items()
    }
