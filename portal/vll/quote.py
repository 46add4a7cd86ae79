"""The quote for a line: the refusals, the allocation and the alternatives.

Validation, previews, orders, changes, imports, adoption and approval use the same quote. An order locks the
ports, takes the first refusal, and then leases what the quote allocates, all in one transaction.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from portal.accounts.models import Customer, User
from portal.allocation.cpu_core_bookings import (
    EndLoad,
    RouterCapacity,
    cores_book,
    cores_refusals,
    router_capacities,
)
from portal.allocation.errors import RouterFull
from portal.allocation.vlan_leases import foreign_frames, free_outer_vlans, vlans_taken
from portal.core.network.encapsulations import AUTO_TUNNELS, Family, Transport
from portal.core.network.required_mtu import ETHERNET_HEADER, VLAN_TAG, carried_frame
from portal.core.network.vlan_tags import Tagging
from portal.inventory.models import Port
from portal.underlay.current_topology import current_topology, line_ends, path_policy
from portal.underlay.errors import TransportRefused
from portal.underlay.transport_selection import (
    Assumption,
    Between,
    LineEnd,
    Option,
    SelectedTransport,
    assumptions,
    barred,
    options,
    select_transport,
)
from portal.vll.errors import EndsSwapped, ReservationUnknown
from portal.vll.line_allocation import (
    Current,
    ForeignFrames,
    LeasedTunnel,
    core_loads,
    ends_lease,
    gre_key_families,
    tunnel_lease,
)
from portal.vll.line_revision import AllocatedEnd, LineRevision, content_of
from portal.vll.line_rules import (
    Check,
    check_frame,
    check_in_service,
    check_may_order,
    check_orderable,
    check_ports,
    check_tombstones,
    link_loss_refusals,
    profile_refusals,
)
from portal.vll.line_spec import AUTO, LINE, LineSpec
from portal.vll.models import Reservation, Vll
from portal.vll.sentences import Wait, waits_of
from portal.vll.states import AdminStatus

VLANS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class QuotedEnd:
    """The free resources of one port.

    ``vlans_free``: the number of outer VLANs that are free for this tagging. ``vlans``: the first of these
    VLANs, in the order in which "any" takes them. ``free_after_bps``: the free rate after the requested line
    is booked; 0 if the line does not fit.
    """

    port: Port
    free_bps: int
    free_after_bps: int
    vlans_free: int
    vlans: list[int]


@dataclass(kw_only=True)
class Quote(Check):
    """The result of a check of ``spec``. Sizes in bytes, rates in bit/s.

    Without refusals, an order would be accepted. ``selected``: the transport, None if no transport fits.
    ``passed_over``: the full router cores that made ``auto`` replace the line's transport. ``reservation``:
    the reservation that the order uses.

    The alternatives are read when they are used.
    """

    spec: LineSpec
    user: User
    now: datetime
    current: Current | None = None
    reservation: Reservation | None = None
    selected: SelectedTransport | None = None
    passed_over: Iterable[RouterFull] = ()
    _cores_refusals: dict[Transport, list[RouterFull]] = field(init=False, default_factory=dict)

    @property
    def feasible(self) -> bool:
        """Return whether an order would be accepted."""
        return not self.refusals

    @property
    def line(self) -> LineRevision | None:
        """Return the leased content of the line; None for a new line."""
        return self.current.line if self.current else None

    @property
    def changes_nothing(self) -> bool:
        """Return whether an existing line stays the same, apart from its description."""
        return self.line is not None and self.spec == self.line.spec

    @property
    def needs_approval(self) -> bool:
        """Return whether the NOC must approve the order. A change needs approval only for more bandwidth."""
        customer, before = next((port.customer for port in self.ports.values()), None), self.line
        if before and self.spec.cir_bps <= before.cir_bps and self.spec.peak_bps <= before.peak_bps:
            return False
        return customer is not None and needs_approval(self.user, customer, self.spec.peak_bps)

    @property
    def transport(self) -> Transport:
        """Return the selected transport.

        If no transport fits, return the requested one, or the first that auto tries.
        """
        if self.selected is not None:
            return self.selected.transport
        if self.spec.transport != AUTO:
            return Transport(self.spec.transport)
        local = self.ports["a"].router_id == self.ports["z"].router_id
        return Transport.L2XC if local else AUTO_TUNNELS[0]

    # How the line is carried.

    @cached_property
    def _between(self) -> tuple[LineEnd, LineEnd]:
        return line_ends(self.ports["a"].router, self.ports["z"].router)

    @cached_property
    def gre_keys(self) -> frozenset[Family]:
        """Return the address families over which a GRE tunnel would have a key."""
        if not self.can_end:
            return frozenset()
        return gre_key_families(*self._between, line=self.line, ports=self.ports)

    @cached_property
    def _underlay(self) -> Between:
        a, z = self.ports["a"].router, self.ports["z"].router
        return Between(
            topology=current_topology(now=self.now),
            a=a.pk,
            z=z.pk,
            a_families=[family for family in Family if a.loopback(family)],
            z_families=[family for family in Family if z.loopback(family)],
            carried_tags=self.spec.carried_tags,
            policy=path_policy(),
            barred=barred(*self._between, Transport, gre_keys=self.gre_keys),
            gre_keys=self.gre_keys,
        )

    def carried_by(self, transport: Transport | None) -> SelectedTransport:
        """Return how the transport carries the line; None lets ``auto`` choose. Raises a TransportRefused."""
        return select_transport(self._underlay, svc_mtu=self.spec.svc_mtu, requested=transport)

    def select(self) -> SelectedTransport:
        """Return the transport for the line. Raises a TransportRefused.

        A line with ``auto`` keeps its transport while the routers' cores suffice for it. Otherwise ``auto``
        chooses again: the cheapest transport that fits, apart from GRE. GRE may be cheaper, but ``auto``
        takes GRE only if nothing else fits.
        """
        unchanged = self.current.unchanged_path if self.current else None
        if unchanged is not None and unchanged.gre_key and not all(end.gre_keys for end in self._between):
            unchanged = None
        if self.spec.transport != AUTO:
            return unchanged or self.carried_by(Transport(self.spec.transport))
        preferred = self.current.preferred if self.current else None
        if unchanged is not None or preferred is not None:
            try:
                kept = unchanged or self.carried_by(preferred)
            except TransportRefused:
                pass  # auto chooses below
            else:
                full = self.cores_refusals(kept.transport)
                if not full:
                    return kept
                self.passed_over = full
        return self.carried_by(None)

    def cores_refusals(self, transport: Transport) -> list[RouterFull]:
        """Return the errors of a booking of the routers' cores for this transport."""
        if transport not in self._cores_refusals:
            ends = self._loads(transport)
            self._cores_refusals[transport] = cores_refusals(ends=ends, transport=transport, own=self._own)
        return self._cores_refusals[transport]

    def _loads(self, transport: Transport) -> dict[str, EndLoad]:
        return core_loads(self.ports, cir_bps=self.spec.cir_bps, transport=transport)

    @property
    def _own(self) -> Collection[UUID]:
        return self.current.owners if self.current else ()

    # What an order leases.

    @property
    def chosen(self) -> SelectedTransport:
        """Return the selected transport of a quote without refusals."""
        assert self.selected is not None  # noqa: S101 - no rule was broken, so every rule was checked
        return self.selected

    def ends_lease(
        self, owner: UUID | None, *, foreign: ForeignFrames | None = None
    ) -> dict[str, AllocatedEnd]:
        """Lease VLANs and bandwidth; see ``portal.vll.line_allocation.ends_lease``."""
        return ends_lease(
            self,
            ends=self.spec.ends,
            cir_bps=self.spec.cir_bps,
            owner=owner,
            current=self.current,
            now=self.now,
            foreign=foreign,
        )

    def lease(self, owner: UUID) -> LineRevision:
        """Lease all resources but cores for ``owner``, and return the revision with the leased values.

        Raises VlanTaken, VlanInForeignUse, VlanCoolingOff, NoVlanFree, PortFull, VniPoolExhausted,
        GreKeysExhausted, GrePairsExhausted.
        """
        ends = self.ends_lease(owner)
        tunnel = tunnel_lease(self.chosen, self.ports, owner=owner, line=self.line, now=self.now)
        return self.content(ends, tunnel)

    def cores_lease(self, owner: UUID) -> None:
        """Book the routers' cores for ``owner``. Raises RouterFull. Call it after all other leases."""
        transport = self.chosen.transport
        cores_book(ends=self._loads(transport), transport=transport, owner=owner, own=self._own)

    def content(self, ends: Mapping[str, AllocatedEnd], tunnel: LeasedTunnel) -> LineRevision:
        """Return the specification and its allocations as the content of a revision."""
        transport = self.chosen.transport
        a_end, z_end = (replace(ends[side], tunnel_address=tunnel.addresses[side]) for side in "az")
        return LineRevision(
            **{each.name: getattr(self.spec, each.name) for each in LINE},
            encapsulation=transport.encapsulation.value,
            family=None if transport.family is None else transport.family.value,
            vni=tunnel.vni,
            gre_key=tunnel.gre_key,
            frame=self.chosen.frame,
            admin_status=self.line.admin_status if self.line else AdminStatus.UP,
            decommission_at=None,
            a_end=a_end,
            z_end=z_end,
        )

    # The alternatives.

    @cached_property
    def foreign(self) -> ForeignFrames:
        """Return the frames that foreign interfaces take on the ports."""
        return foreign_frames(self.ports.values())

    @cached_property
    def ends(self) -> dict[str, QuotedEnd]:
        """Return the free resources of the ports, by side."""
        more: dict[int, int] = defaultdict(int)
        for side, port in self.ports.items():
            own_bps = self.current.booked_bps(side, port) if self.current else 0
            more[port.pk] += self.spec.cir_bps - own_bps
        found = {}
        for side, port in self.ports.items():
            tags = self.spec.ends[side].tags
            free: list[int] = []
            # A missing or invalid inner VLAN is refused already. No outer VLAN can be proposed for it.
            if tags.tagging is not Tagging.UNTAGGED and not self.tags_refused(side):
                free = free_outer_vlans(vlans_taken(port), self.foreign[port.pk].values(), tags)
            found[side] = QuotedEnd(
                port=port,
                free_bps=port.free_bps,
                free_after_bps=port.free_after_bps(more[port.pk]),
                vlans_free=len(free),
                vlans=free[:VLANS_SHOWN],
            )
        return found

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """Return all transports between the routers, cheapest first."""
        return options(self._underlay) if self.can_end else ()

    @cached_property
    def largest_svc_mtu(self) -> int | None:
        """Return the largest svc-mtu that the requested transport carries between these ports.

        None if no transport fits.
        """
        eligible = [option for option in self.options if self.spec.transport in (AUTO, option.transport)]
        carried = [option.largest_svc_mtu for option in eligible if option.largest_svc_mtu is not None]
        if not carried:
            return None
        at_ports = [
            port.max_frame
            - ETHERNET_HEADER
            - VLAN_TAG * (self.spec.carried_tags + self.spec.ends[side].tagging.selecting_tags)
            for side, port in self.ports.items()
        ]
        return min(max(carried), *at_ports)

    @property
    def links(self) -> list[dict[str, Any]]:
        """Return the links that count for the path's MTU. A ``backup`` link is used only after a failure."""
        if self.selected is None or self.selected.path is None:
            return []
        topology, path = self._underlay.topology, self.selected.path
        return [
            {"name": link.name, "ip_mtu": topology.ip_mtu(link), "backup": link in path.used.backup}
            for link in path.links
        ]

    @cached_property
    def routers(self) -> list[RouterCapacity]:
        """Return the free capacity of the routers' cores."""
        if not self.can_end:
            return []
        return router_capacities(ends=self._loads(self.transport), transport=self.transport)

    @property
    def assumptions(self) -> list[Assumption]:
        """Return the declared values that the check uses."""
        if not self.can_end:
            return []
        return assumptions(*self._between, self.transport, gre_keys=self.gre_keys)

    @cached_property
    def waits(self) -> list[Wait]:
        """Return why an accepted order would wait. The list is also filled if the order is refused."""
        return waits_of(list({port.pk: port for port in self.ports.values()}.values()))


def quote(
    spec: LineSpec,
    current: Current | None = None,
    *,
    user: User,
    now: datetime,
    lock: bool = False,
    reservation: UUID | None = None,
) -> Quote:
    """Return the quote for a new line, or for a line whose leases are ``current``.

    ``lock``: lock the ports for an order, and raise the first refusal. Without ``lock``, the quote has all
    refusals, and the first one is the error that the order would raise. ``reservation``: the reservation
    whose leases a new line would take over.
    """
    found = Quote(lock=lock, spec=spec, current=current, user=user, now=now)
    if reservation is not None:
        with found.noting():
            found.reservation = reservation_find(user, reservation, now=now, lock=lock)
            found.current = reserved(found.reservation)
    _check(found)
    return found


def quote_change(
    vll: Vll,
    changes: Mapping[str, Any],
    *,
    user: User,
    now: datetime,
    lock: bool = False,
    expected_revision: int | None = None,
) -> Quote:
    """Return the quote for a change of ``vll``; ``changes`` as for ``LineSpec.changed``.

    A change that changes nothing is not refused: ``changes_nothing`` is then true, and the line keeps its
    transport. ``lock`` as for ``quote``; the caller has locked the line.
    """
    before = content_of(vll)
    spec = before.spec.changed(changes)
    current = Current(
        owner=vll.pk,
        cir_bps=before.cir_bps,
        ends=before.ends,
        customer=vll.customer,
        line=before,
        in_service=before,
        preferred=before.allocated_transport if "transport" not in changes else None,
        unchanged_path=_unchanged_path(before, spec),
    )
    found = Quote(lock=lock, spec=spec, current=current, user=user, now=now)
    with found.noting():
        check_orderable(vll, user, expected_revision=expected_revision)
    with found.noting():
        check_in_service(vll)
    before_ports, ports = ([end.port for end in each.ends.values()] for each in (before, spec))
    swapped = before_ports == ports[::-1] != ports
    if swapped:
        found.refuse([EndsSwapped()])
    known = list(found.refusals)
    if not (lock and found.changes_nothing):
        _check(found)
    if swapped or found.changes_nothing:
        found.refusals = known
    return found


def _check(found: Quote) -> None:
    """Apply every rule whose prerequisites are met. Check the leases, too, if the caller does not lock."""
    spec, current, line = found.spec, found.current, found.line
    check_ports(
        found,
        user=found.user,
        ends=spec.ends,
        cir_bps=spec.cir_bps,
        owner=current.customer if current else None,
        # The order settles the leases of its reservation on these ports.
        more_ports=[end.port for end in current.ends.values()] if current and line is None else (),
        booked_bps=line.cir_bps if line else None,
    )
    fits_a_frame = False
    with found.noting():
        carried_frame(spec.svc_mtu, carried_tags=spec.carried_tags)
        fits_a_frame = True
    if found.can_end:
        if fits_a_frame:
            with found.noting():
                found.selected = found.select()
        found.refuse(found.cores_refusals(found.transport))
    for side, port in found.ports.items() if fits_a_frame else ():
        with found.noting():
            check_frame(port, side=side, spec=spec)
    found.refuse(profile_refusals(spec, found.ports))
    if spec.link_loss_forwarding:
        found.refuse(link_loss_refusals(spec, found.ports, current.in_service if current else None))
    if current is not None and line is not None:
        with found.noting():
            check_tombstones(current.owner, line, found.ports)
    if found.lock:
        return
    found.ends_lease(None, foreign=found.foreign)
    if found.selected is not None:
        with found.noting():
            tunnel_lease(found.selected, found.ports, owner=None, line=line, now=found.now)


def _unchanged_path(before: LineRevision, spec: LineSpec) -> SelectedTransport | None:
    """Return the transport that carries the line now, if the change has no new demands on the underlay.

    Otherwise return None.
    """
    same_ports = all(spec.ends[side].port == end.port for side, end in before.ends.items())
    same_size = (spec.svc_mtu, spec.carried_tags) == (before.svc_mtu, before.carried_tags)
    if same_ports and same_size and spec.transport == before.transport:
        return SelectedTransport(before.allocated_transport, before.frame, gre_key=before.gre_key is not None)
    return None


def needs_approval(user: User, customer: Customer, peak_bps: int) -> bool:
    """Return whether the NOC must approve this CIR plus EIR (bit/s).

    Orders of NOC staff need no approval.
    """
    limit = customer.approve_up_to_bps
    return limit is not None and peak_bps > limit and not user.is_noc


def reservation_find(user: User, reservation: UUID, *, now: datetime, lock: bool) -> Reservation:
    """Return the reservation, locked for an order. Raises ReservationUnknown, NotAllowedToOrder."""
    rows = Reservation.objects.select_for_update(of=("self",)) if lock else Reservation.objects.all()
    mine = rows.visible_to(user).filter(pk=reservation, expires_at__gt=now).select_related("customer")
    row: Reservation | None = mine.first()
    if row is None:
        raise ReservationUnknown(hold=str(reservation))
    check_may_order(user, row.customer)
    return row


def reserved(row: Reservation) -> Current:
    """Return the leases of a reservation."""
    ends = {side: AllocatedEnd.from_json(row.ends[side]) for side in "az"}
    return Current(owner=row.pk, cir_bps=row.cir_bps, ends=ends)
