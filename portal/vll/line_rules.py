"""The rules of a line: its ends, rates and sizes, and the state of a line that is to change.

``portal.vll.quote`` applies the rules. For an order, a rule raises its refusal. For a quote without an order,
all refusals are collected.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from portal.accounts import permissions
from portal.accounts.models import Customer, User
from portal.allocation.vlan_leases import Keys, overlap, tag_keys
from portal.core.db.statements import CompiledQuery
from portal.core.errors import DomainError
from portal.core.network.bandwidth_profile import MAX_BURST
from portal.core.network.required_mtu import uni_frame
from portal.core.network.vlan_tags import MIN_VLAN, Tagging, Tags, check_tagging
from portal.inventory.interfaces import with_link_speed
from portal.inventory.models import ObservedInterface, ObservedRouter, Port
from portal.underlay.errors import TransportRefused
from portal.vll.errors import (
    BurstOutOfRange,
    CirOutOfRange,
    EirOutOfRange,
    EndsAreTheSame,
    ExcessBurstWithoutRate,
    FrameTooLargeForPort,
    LinkLossNeedsUni,
    LinkLossNeedsWholePorts,
    LinkLossPortInUse,
    LinkLossUnsupported,
    NotAllowedToOrder,
    OrderIsOpen,
    PeakAbovePort,
    PortHasNoCustomer,
    PortOfAnotherCustomer,
    PortsOfTwoCustomers,
    PortUnknown,
    RouterHasNoAgent,
    RouterInMaintenance,
    StaleRevision,
    StillBeingRemoved,
    WrongLifecycle,
)
from portal.vll.line_revision import LineRevision
from portal.vll.line_spec import EndSpec, LineSpec
from portal.vll.models import Vll, VllTombstone
from portal.vll.states import IN_SERVICE, TERMINAL_ORDER_STATES, OrderAction

# 1 Tbit/s: faster than any port.
MAX_RATE_BPS = 10**12


@dataclass(kw_only=True)
class Check:
    """The refusals so far, in the order of the rules, and the ports by side that the user may see.

    ``lock``: whether the caller is about to lease. The check then locks the ports and raises the first
    refusal. Otherwise it collects all refusals.
    """

    lock: bool
    refusals: list[DomainError] = field(default_factory=list)
    ports: dict[str, Port] = field(default_factory=dict)
    customer: Customer | None = None

    def refuse(self, refusals: Iterable[DomainError]) -> None:
        """Collect these refusals, or raise the first one."""
        for refusal in refusals:
            if self.lock:
                raise refusal
            self.refusals.append(refusal)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Collect the refusal that is raised inside and continue, or let it pass."""
        try:
            yield
        except DomainError as refusal:
            if self.lock:
                raise
            also = refusal.also if isinstance(refusal, TransportRefused) else ()
            self.refusals += [refusal, *also]

    def tags_refused(self, side: str) -> bool:
        """Return whether the VLANs of this end do not fit its tagging."""
        names = {f"{side}_end.{name}" for name in ("outer_vlan", "inner_vlan", "exact_match")}
        return any(refusal.field in names for refusal in self.refusals)

    @property
    def can_end(self) -> bool:
        """Return whether both ports are known and VLLs can end on their routers."""
        return len(self.ports) == 2 and all(port.router.has_agent for port in self.ports.values())

    @property
    def owner(self) -> Customer:
        """Return the customer of the ports after a check without refusals."""
        assert self.customer is not None  # noqa: S101 - no rule was broken, so every rule was checked
        return self.customer


def check_ports(
    check: Check,
    *,
    user: User,
    ends: Mapping[str, EndSpec],
    cir_bps: int,
    owner: Customer | None = None,
    more_ports: Iterable[int] = (),
    booked_bps: int | None = None,
) -> None:
    """Check only the rules of the two ends and of the rate (bit/s). A reservation needs no other rules.

    ``more_ports``: the ids of ports to lock, too. ``owner``: the customer of an existing line.
    ``booked_bps``: its rate, which the line may keep even if the minimum rate is higher now.
    """
    least = settings.LONGLINE_MIN_CIR_BPS
    with check.noting():
        if not least <= cir_bps <= MAX_RATE_BPS and cir_bps != booked_bps:
            raise CirOutOfRange(value=cir_bps, minimum=least, maximum=MAX_RATE_BPS)
    for side, end in ends.items():
        with check.noting():
            _check_tags(end, side=side)
    visible = ports_of(user, {*more_ports, *(end.port for end in ends.values())}, lock=check.lock)
    for side, end in ends.items():
        with check.noting():
            if end.port not in visible:
                raise PortUnknown(field=f"{side}_end.port", port=end.port)
            check.ports[side] = visible[end.port]
            _check_owner(check.ports[side], side=side, owner=owner)
    if len(check.ports) == 2:
        if all(port.customer is not None for port in check.ports.values()):
            with check.noting():
                check.customer = _customer_of(user, check.ports)
        if not any(check.tags_refused(side) for side in ends):
            with check.noting():
                _check_distinct(check.ports, ends["a"], ends["z"])
    for side, port in check.ports.items():
        with check.noting():
            _check_router(port, side=side)


def _check_tags(end: EndSpec, *, side: str) -> None:
    outer = MIN_VLAN if end.outer_vlan == "any" else end.outer_vlan
    try:
        check_tagging(end.tagging, outer_vlan=outer, inner_vlan=end.inner_vlan, exact_match=end.exact_match)
    except DomainError as error:
        error.field = f"{side}_end.{error.field}"
        raise


def ports_of(user: User, ids: Iterable[int], *, lock: bool) -> dict[int, Port]:
    """Return, by id, those ports with one of these ids that this user may see.

    ``lock`` locks their rows in the order of their ids, so that two orders cannot deadlock. Rows that refer
    to a port, such as an end with a new report, can still be written.
    """
    if not user.is_active:
        return {}
    reader = () if user.is_noc else (user.pk,)
    ports = _PORTS(*reader, *sorted(set(ids)), noc=user.is_noc, lock=lock)
    return {port.pk: port for port in ports}


def _ports(*values: int, noc: bool, lock: bool) -> QuerySet[Port]:
    """Select the ports with given ids that a reader may see.

    With ``noc``, the reader is NOC staff, and ``values`` are the ids of the ports. Otherwise ``values`` are
    the id of the reader and then the ids of the ports.
    """
    reader = User(noc_role=User.NocRole.NOC) if noc else User(pk=values[0])
    ports = (
        Port.objects.visible_to(reader)
        .filter(pk__in=values if noc else values[1:])
        .order_by("pk")
        .select_related("router__site", "router__observed", "customer")
    )
    ports = with_link_speed(ports)
    return ports.locked() if lock else ports


_PORTS = CompiledQuery[Port](_ports)


def _check_owner(port: Port, *, side: str, owner: Customer | None) -> None:
    if port.customer is None:
        raise PortHasNoCustomer(field=f"{side}_end.port", port=str(port))
    if owner is not None and port.customer_id != owner.pk:
        raise PortOfAnotherCustomer(field=f"{side}_end.port", port=str(port), customer=owner.name)


def _customer_of(user: User, ports: Mapping[str, Port]) -> Customer | None:
    a_port, z_port = ports["a"], ports["z"]
    if a_port.customer_id != z_port.customer_id:
        raise PortsOfTwoCustomers(a_port=str(a_port), z_port=str(z_port))
    if a_port.customer is not None:
        check_may_order(user, a_port.customer)
    return a_port.customer


def check_may_order(user: User, customer: Customer) -> None:
    """Check that this user may order for the customer. Raises NotAllowedToOrder."""
    if not permissions.may_order(user, customer):
        raise NotAllowedToOrder(customer=customer.name)


def _check_distinct(ports: Mapping[str, Port], a_end: EndSpec, z_end: EndSpec) -> None:
    """Refuse two ends that both select some frames of the same port."""
    if ports["a"].pk != ports["z"].pk:
        return
    one, other = frames_named(a_end.tags), frames_named(z_end.tags)
    whole = Tagging.UNTAGGED in (a_end.tagging, z_end.tagging)
    if whole or (one is not None and other is not None and overlap(one, other)):
        raise EndsAreTheSame(port=str(ports["a"]))


def frames_named(tags: Tags) -> Keys | None:
    """Return the keys of the frames that an end selects on its port, for a single order or a table of orders.

    Return None if the portal chooses the outer VLAN, or if the VLANs do not fit the tagging. Another check
    refuses such VLANs.
    """
    try:
        check_tagging(
            tags.tagging, outer_vlan=tags.outer, inner_vlan=tags.inner, exact_match=tags.exact_match
        )
    except DomainError:
        return None
    return tag_keys(tags)


def _check_router(port: Port, *, side: str) -> None:
    """Refuse a router on which no VLL can end, or which takes no new lines now."""
    if not port.router.has_agent:
        raise RouterHasNoAgent(field=f"{side}_end.port", router=port.router.name)
    if port.router.maintenance_since is not None:
        raise RouterInMaintenance(field=f"{side}_end.port", router=port.router.name)


def check_frame(port: Port, *, side: str, spec: LineSpec) -> None:
    """Check that the port carries the largest frame of the line. Raises FrameTooLargeForPort."""
    frame = uni_frame(spec.svc_mtu, tagging=spec.ends[side].tagging, carried_tags=spec.carried_tags)
    if frame > port.max_frame:
        raise FrameTooLargeForPort(
            field=f"{side}_end.port",
            port=str(port),
            frame=frame,
            max_frame=port.max_frame,
            largest_svc_mtu=spec.svc_mtu - (frame - port.max_frame),
        )


def profile_refusals(spec: LineSpec, ports: Mapping[str, Port]) -> Iterator[DomainError]:
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


def link_loss_refusals(
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


def check_orderable(vll: Vll, user: User, *, expected_revision: int | None = None) -> None:
    """Check that this user may place an order for this line now.

    Raises NotAllowedToOrder, StaleRevision, OrderIsOpen.
    """
    check_may_order(user, vll.customer)
    if expected_revision is not None and expected_revision != vll.revision:
        raise StaleRevision(expected=expected_revision, current=vll.revision)
    open_order = vll.orders.exclude(state__in=TERMINAL_ORDER_STATES).first()
    if open_order is not None:
        raise OrderIsOpen(order_id=str(open_order.pk), action=open_order.action, state=open_order.state)


def check_in_service(vll: Vll) -> None:
    """Check that the line is in service; no other line can be changed. Raises WrongLifecycle."""
    if vll.lifecycle not in IN_SERVICE:
        raise WrongLifecycle(lifecycle=vll.lifecycle, action=OrderAction.MODIFY)


def check_tombstones(vll: UUID, before: LineRevision, ports: Mapping[str, Port]) -> None:
    """Refuse to move an end to a router that has not confirmed an earlier removal of this end.

    ``vll``: the id of the line. Raises StillBeingRemoved.
    """
    for side, port in ports.items():
        if port.pk == before.ends[side].port:
            continue
        if VllTombstone.objects.filter(vll=vll, side=side, router=port.router_id).exists():
            raise StillBeingRemoved(field=f"{side}_end.port", router=port.router.name)
