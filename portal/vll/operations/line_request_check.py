"""All rules of a line in one check. Orders enforce the rules, and validation reports them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.conf import settings

from portal.accounts.models import Customer, User
from portal.allocation.cpu_core_bookings import EndLoad, cores_refusals
from portal.allocation.errors import RouterFull
from portal.allocation.packet_capacity import end_load, weights_of
from portal.core.errors import DomainError
from portal.core.network.bandwidth_profile import MAX_BURST
from portal.core.network.encapsulations import AUTO_TUNNELS, Family, Transport
from portal.core.network.required_mtu import carried_frame, uni_frame
from portal.core.network.vlan_tags import Tagging
from portal.inventory.models import ObservedInterface, ObservedRouter, Port, Router
from portal.underlay.errors import TransportRefused
from portal.underlay.topology_cache import current_topology, line_ends, path_policy
from portal.underlay.transport_selection import SelectedTransport, select_transport
from portal.underlay.tunnel_endpoints import barred
from portal.vll.errors import (
    BurstOutOfRange,
    CirOutOfRange,
    EirOutOfRange,
    ExcessBurstWithoutRate,
    FrameTooLargeForPort,
    LinkLossNeedsUni,
    LinkLossNeedsWholePorts,
    LinkLossPortInUse,
    LinkLossUnsupported,
    PeakAbovePort,
    PortUnknown,
)
from portal.vll.gre_key_rules import gre_key_families
from portal.vll.line_spec import AUTO, EndSpec, LineRevision, LineSpec
from portal.vll.operations.end_validation import (
    check_distinct,
    check_end,
    check_owner,
    check_router,
    customer_of,
    ports_of,
)

# 1 Tbit/s: faster than any port.
MAX_RATE_BPS = 10**12


@dataclass(frozen=True, slots=True)
class Accepted:
    """A specification that breaks no rule, with the resolved values; ``ports`` by side.

    ``passed_over``: the full router cores that made ``auto`` replace the line's transport, if any.
    """

    spec: LineSpec
    customer: Customer
    ports: dict[str, Port]
    selected: SelectedTransport
    passed_over: tuple[RouterFull, ...] = ()


@dataclass(slots=True)
class LineCheck:
    """The result of a check: ``refusals`` in the order of the rules, ``ports`` that the user may see."""

    ends: Mapping[str, EndSpec]
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

    def accepted(self, spec: LineSpec) -> Accepted:
        """Return the accepted specification; raise the first refusal if there is any."""
        customer = self.owned()
        assert self.selected is not None  # noqa: S101 - as above
        return Accepted(spec, customer, self.ports, self.selected, tuple(self.passed_over))


def check_line(
    *,
    user: User,
    spec: LineSpec,
    now: datetime,
    lock: bool,
    owner: Customer | None = None,
    line: LineRevision | None = None,
    in_service: LineRevision | None = None,
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
        ends=spec.ends,
        cir_bps=spec.cir_bps,
        lock=lock,
        owner=owner,
        more_ports=more_ports,
        booked_bps=line.cir_bps if line else None,
    )
    fits_a_frame = False
    with found.noting():
        carried_frame(spec.svc_mtu, carried_tags=spec.carried_tags)
        fits_a_frame = True
    if found.can_end:
        if unchanged_path is not None and unchanged_path.gre_key and not _both_have_gre_keys(found.ports):
            unchanged_path = None
        if fits_a_frame:
            with found.noting():
                found.selected = _selected(found, spec, line, preferred, unchanged_path, own, now)
        transport = likely_transport(found, spec)
        found.refusals += _check_cores(found.ports, spec.cir_bps, transport, own)
    for side, port in found.ports.items() if fits_a_frame else ():
        with found.noting():
            _check_frame(port, side, spec)
    found.refusals += _profile_refusals(spec, found.ports)
    if spec.link_loss_forwarding:
        found.refusals += _link_loss_refusals(spec, found.ports, in_service)
    return found


def check_ports(
    *,
    user: User,
    ends: Mapping[str, EndSpec],
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
        if not least <= cir_bps <= MAX_RATE_BPS and cir_bps != booked_bps:
            raise CirOutOfRange(value=cir_bps, minimum=least, maximum=MAX_RATE_BPS)
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


def _check_frame(port: Port, side: str, spec: LineSpec) -> None:
    frame = uni_frame(spec.svc_mtu, tagging=spec.ends[side].tagging, carried_tags=spec.carried_tags)
    if frame > port.max_frame:
        raise FrameTooLargeForPort(
            field=f"{side}_end.port",
            port=str(port),
            frame=frame,
            max_frame=port.max_frame,
            largest_svc_mtu=spec.svc_mtu - (frame - port.max_frame),
        )


def _selected(
    found: LineCheck,
    spec: LineSpec,
    line: LineRevision | None,
    preferred: Transport | None,
    unchanged_path: SelectedTransport | None,
    own: Collection[UUID],
    now: datetime,
) -> SelectedTransport:
    """Return the transport for the line.

    A line with ``auto`` keeps its transport while the routers' cores suffice for it. Otherwise ``auto``
    chooses again: the cheapest transport that fits, apart from GRE. GRE may be cheaper, but ``auto`` takes
    GRE only if nothing else fits.
    """
    if spec.transport != AUTO:
        return unchanged_path or carried_by(found.ports, spec, Transport(spec.transport), line, now)
    if unchanged_path is not None or preferred is not None:
        try:
            kept = unchanged_path or carried_by(found.ports, spec, preferred, line, now)
        except TransportRefused:
            pass  # auto chooses below
        else:
            full = _check_cores(found.ports, spec.cir_bps, kept.transport, own)
            if not full:
                return kept
            found.passed_over = full
    return carried_by(found.ports, spec, None, line, now)


def likely_transport(found: LineCheck, spec: LineSpec) -> Transport:
    """Return the transport that the check selected.

    If no transport fits, return the requested one, or the first that auto tries.
    """
    if found.selected is not None:
        return found.selected.transport
    if spec.transport != AUTO:
        return Transport(spec.transport)
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
    spec: LineSpec,
    transport: Transport | None,
    line: LineRevision | None,
    now: datetime,
) -> SelectedTransport:
    """Return the transport that carries the line between these ports.

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
        svc_mtu=spec.svc_mtu,
        carried_tags=spec.carried_tags,
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


def _profile_refusals(spec: LineSpec, ports: Mapping[str, Port]) -> Iterator[DomainError]:
    """Return the refusals of the excess rate and the bursts.

    A bucket that is smaller than the largest frame at a UNI never has enough tokens for this frame (RFC 2698,
    section 3), so all such frames would be lost. CIR plus EIR must not exceed the speed of a port, even if
    the port has no other bookings.
    """
    if not 0 <= spec.eir_bps <= MAX_RATE_BPS:
        yield EirOutOfRange(value=spec.eir_bps, minimum=0, maximum=MAX_RATE_BPS)
    elif too_slow := next((port for port in ports.values() if port.speed_bps < spec.peak_bps), None):
        yield PeakAbovePort(
            port=str(too_slow),
            peak_bps=spec.peak_bps,
            speed_bps=too_slow.speed_bps,
            field="eir_bps" if spec.eir_bps else "cir_bps",
        )
    frame = spec.largest_uni_frame
    for name, burst in (("cbs_bytes", spec.cbs_bytes), ("ebs_bytes", spec.ebs_bytes)):
        if burst is not None and not frame <= burst <= MAX_BURST:
            yield BurstOutOfRange(field=name, value=burst, minimum=frame, maximum=MAX_BURST)
    if spec.ebs_bytes is not None and spec.eir_bps == 0:
        yield ExcessBurstWithoutRate(value=spec.ebs_bytes)


def _link_loss_refusals(
    spec: LineSpec, ports: Mapping[str, Port], in_service: LineRevision | None
) -> Iterator[DomainError]:
    """Return all obstacles to forwarding link losses between these ports.

    The rules use the routers' reports when the line is ordered and when the order is approved. They do not
    use reports about a port where the line forwards losses already (``in_service``). An agent checks its VPP
    again before it takes a port down.
    """
    for side, end in spec.ends.items():
        if end.tagging is not Tagging.UNTAGGED:
            yield LinkLossNeedsWholePorts(field="link_loss_forwarding", side=side.upper())
    for side, port in ports.items():
        if port.kind != Port.Kind.UNI:
            yield LinkLossNeedsUni(field="link_loss_forwarding", port=str(port))
        goes_on = (
            in_service is not None
            and in_service.link_loss_forwarding
            and in_service.ends[side].port == port.pk
        )
        if goes_on or not port.router.has_agent:
            continue
        if not ObservedRouter.objects.filter(router=port.router_id, link_loss_forwarding=True).exists():
            yield LinkLossUnsupported(field="link_loss_forwarding", router=port.router.name)
        if (use := _other_use(port)) is not None:
            yield LinkLossPortInUse(field="link_loss_forwarding", port=str(port), interface=use)


def _other_use(port: Port) -> str | None:
    """Return the name of a foreign sub-interface or Linux interface on the port."""
    seen = ObservedInterface.objects.filter(router=port.router_id)
    sub = seen.filter(name__startswith=f"{port.interface}.").order_by("name").values_list("name", flat=True)
    paired = seen.filter(name=port.interface).exclude(linux_cp="").values_list("linux_cp", flat=True)
    return sub.first() or paired.first()
