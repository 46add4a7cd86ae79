"""The feasibility of an order now: all refusals and the possible alternatives. Writes nothing."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from portal.accounts.models import Customer, User
from portal.allocation.bandwidth_bookings import bandwidth_check
from portal.allocation.cpu_core_bookings import RouterCapacity, router_capacities
from portal.allocation.errors import VniPoolExhausted
from portal.allocation.gre_leases import gre_pair_check
from portal.allocation.vlan_leases import (
    Keys,
    foreign_frames,
    free_outer_vlans,
    tag_keys,
    vlan_choose,
    vlans_taken,
)
from portal.allocation.vni_leases import vni_available
from portal.core.errors import DomainError
from portal.core.network.encapsulations import Encapsulation, Family, Transport
from portal.core.network.required_mtu import ETHERNET_HEADER, VLAN_TAG
from portal.core.network.vlan_tags import Frames, Tagging
from portal.inventory.models import Port
from portal.underlay.topology import Link, Topology
from portal.underlay.topology_cache import current_topology, line_ends, path_policy
from portal.underlay.transport_selection import Option, SelectedTransport, options
from portal.underlay.tunnel_endpoints import Assumption, assumptions, barred
from portal.vll.cooling_off_vlans import removed_lines_named
from portal.vll.errors import EndsAreTheSame, EndsSwapped
from portal.vll.gre_key_rules import gre_key_families, same_tunnel
from portal.vll.line_spec import AUTO, LineRevision, LineSpec, content_of
from portal.vll.models import Vll
from portal.vll.operations.end_validation import named_first
from portal.vll.operations.line_request_check import (
    LineCheck,
    check_line,
    core_loads,
    families,
    likely_transport,
)
from portal.vll.operations.modify_line import (
    check_in_service,
    check_not_swapped,
    check_orderable,
    check_tombstones,
    leased_by,
    unchanged_path,
    waits_for_approval,
)
from portal.vll.operations.reservations import reservation_read
from portal.vll.operations.resource_leases import Leased, same_frames
from portal.vll.order_waits import Wait, waits_of

VLANS_SHOWN = 10
# The frames taken by interfaces that the portal does not manage: by port id, then by interface name.
ForeignFrames = Mapping[int, Mapping[str, Frames]]


@dataclass(frozen=True, slots=True)
class LinkFeasibility:
    """A link that counts for the path's MTU. ``backup``: the path uses the link only after one failure."""

    link: Link
    ip_mtu: int | None
    backup: bool


@dataclass(frozen=True, slots=True)
class EndFeasibility:
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


@dataclass(frozen=True, slots=True)
class Feasibility:
    """The result of the check. ``refusals`` is empty if an order would be accepted. Sizes in bytes.

    ``largest_svc_mtu``: the largest svc-mtu that the requested transport carries between these ports; None if
    no transport fits. ``gre_keys``: the address families over which a GRE tunnel would have a key.
    """

    refusals: list[DomainError]
    selected: SelectedTransport | None
    links: list[LinkFeasibility]
    options: tuple[Option, ...]
    largest_svc_mtu: int | None
    ends: dict[str, EndFeasibility]
    routers: list[RouterCapacity]
    assumptions: list[Assumption]
    # The reasons why an accepted order would wait. The list is also filled if the order would be refused.
    waits: list[Wait]
    gre_keys: frozenset[Family] = frozenset()

    @property
    def feasible(self) -> bool:
        return not self.refusals


@dataclass(frozen=True, slots=True, kw_only=True)
class Existing:
    """A line that an order is to change: its customer, its leases and its transport.

    ``unchanged_path``: the present transport, if the change has no new demands on the underlay; otherwise
    None. ``preferred``: the transport that ``auto`` keeps while it fits.
    """

    customer: Customer
    leased: Leased
    unchanged_path: SelectedTransport | None
    preferred: Transport | None


def feasibility_of(
    *,
    user: User,
    spec: LineSpec,
    now: datetime,
    reservation: UUID | None = None,
    line: Existing | None = None,
) -> Feasibility:
    """Run the checks of ``order_add`` or, for an existing ``line``, the checks of ``order_modify``.

    The first refusal is the error that the order would raise.
    """
    leased = line.leased if line else None
    unknown: list[DomainError] = []
    if reservation is not None:
        try:
            leased = reservation_read(user=user, reservation=reservation, now=now)
        except DomainError as refusal:
            unknown = [refusal]
    topology = current_topology(now=now)
    own = [leased.owner] if leased else []
    found = check_line(
        user=user,
        spec=spec,
        now=now,
        lock=False,
        owner=line.customer if line else None,
        line=line.leased.line if line else None,
        preferred=line.preferred if line else None,
        unchanged_path=line.unchanged_path if line else None,
        own=own,
    )
    if line is not None:
        with found.noting():
            check_tombstones(line.leased, found.ports)
    foreign = foreign_frames(found.ports.values())
    ends = _ends(found, spec, leased, foreign)
    _check_leases(found, spec, leased, foreign)
    offered: tuple[Option, ...] = ()
    capacities: list[RouterCapacity] = []
    assumed: list[Assumption] = []
    gre_keys: frozenset[Family] = frozenset()
    if found.can_end:
        transport = likely_transport(found, spec)
        loads = core_loads(found.ports, cir_bps=spec.cir_bps, transport=transport)
        capacities = router_capacities(ends=loads, transport=transport)
        routers = {side: port.router for side, port in found.ports.items()}
        between = line_ends(routers["a"], routers["z"])
        before = line.leased.line if line else None
        gre_keys = gre_key_families(*between, line=before, ports=found.ports)
        assumed = assumptions(*between, transport, gre_keys=gre_keys)
        offered = options(
            topology,
            routers["a"].pk,
            routers["z"].pk,
            a_families=families(routers["a"]),
            z_families=families(routers["z"]),
            carried_tags=spec.carried_tags,
            policy=path_policy(),
            barred=barred(*between, Transport, gre_keys=gre_keys),
            gre_keys=gre_keys,
        )
    return Feasibility(
        refusals=unknown + found.refusals,
        selected=found.selected,
        links=_links(found.selected, topology),
        options=offered,
        largest_svc_mtu=_largest_svc_mtu(found, spec, offered),
        ends=ends,
        routers=capacities,
        assumptions=assumed,
        waits=waits_of(list({port.pk: port for port in found.ports.values()}.values())),
        gre_keys=gre_keys,
    )


def _check_leases(found: LineCheck, spec: LineSpec, leased: Leased | None, foreign: ForeignFrames) -> None:
    """Collect the errors of the allocators: for the ends, in the order of VLAN allocation, then for the
    tunnel.
    """
    # Both ends may be on one port. The VLANs and bandwidth of the first end are not free for the second.
    taken: dict[int, list[Keys]] = {}
    booked: dict[int, int] = {}
    own = leased.owner if leased else None
    same = any(isinstance(refusal, EndsAreTheSame) for refusal in found.refusals)
    for side, end in named_first(spec.ends):
        port = found.ports.get(side)
        if port is None or port.customer is None or found.tags_refused(side):
            continue
        before = taken.setdefault(port.pk, [])
        # If both ends want the same frames, an earlier check has already refused that.
        occupied = vlans_taken(port, side=side, own=own) + ([] if same else before)
        with found.noting(), removed_lines_named(port):
            outer = vlan_choose(
                port=port,
                side=side,
                tagging=end.tagging,
                outer=end.requested_outer_vlan,
                inner=end.inner_vlan,
                exact_match=end.exact_match,
                taken=occupied,
                # An end that keeps its frames needs no new lease.
                foreign={} if leased and same_frames(leased.ends[side], end) else foreign[port.pk],
            )
            before.append(
                tag_keys(end.tagging, outer=outer, inner=end.inner_vlan, exact_match=end.exact_match)
            )
        own_bps, besides = _booked_already(leased, side, port), booked.get(port.pk, 0)
        if spec.cir_bps > own_bps:
            with found.noting():
                bandwidth_check(
                    port=port,
                    side=side,
                    cir_bps=spec.cir_bps,
                    own_bps=own_bps,
                    booked_besides=besides,
                )
            booked[port.pk] = besides + spec.cir_bps - own_bps
    if found.selected is not None:
        with found.noting():
            _check_transport(found.selected, found.ports, leased.line if leased else None)


def _check_transport(
    selected: SelectedTransport, ports: Mapping[str, Port], line: LineRevision | None
) -> None:
    transport = selected.transport
    has_vni = line is not None and line.vni is not None
    if transport.encapsulation.leases_vni and not has_vni and not vni_available():
        raise VniPoolExhausted
    if transport.encapsulation is Encapsulation.GRE and transport.family is not None and not selected.gre_key:
        if line is not None and line.gre_key is None and same_tunnel(line, transport, ports):
            return
        gre_pair_check(a_router=ports["a"].router, z_router=ports["z"].router, family=transport.family)


def _booked_already(leased: Leased | None, side: str, port: Port) -> int:
    return leased.cir_bps if leased and leased.ends[side].port == port.pk else 0


def _ends(
    found: LineCheck, spec: LineSpec, leased: Leased | None, foreign: ForeignFrames
) -> dict[str, EndFeasibility]:
    ends = {}
    more: dict[int, int] = defaultdict(int)
    for side, port in found.ports.items():
        more[port.pk] += spec.cir_bps - _booked_already(leased, side, port)
    for side, port in found.ports.items():
        end = found.ends[side]
        free: list[int] = []
        # A missing or invalid inner VLAN is refused already. No outer VLAN can be proposed for it.
        if end.tagging is not Tagging.UNTAGGED and not found.tags_refused(side):
            free = free_outer_vlans(
                vlans_taken(port),
                foreign[port.pk].values(),
                tagging=end.tagging,
                inner=end.inner_vlan,
                exact_match=end.exact_match,
            )
        ends[side] = EndFeasibility(
            port=port,
            free_bps=port.free_bps,
            free_after_bps=port.free_after_bps(more[port.pk]),
            vlans_free=len(free),
            vlans=free[:VLANS_SHOWN],
        )
    return ends


def _links(selected: SelectedTransport | None, topology: Topology) -> list[LinkFeasibility]:
    if selected is None or selected.path is None:
        return []
    used = selected.path.used
    return [LinkFeasibility(link, topology.ip_mtu(link), backup=False) for link in used.primary] + [
        LinkFeasibility(link, topology.ip_mtu(link), backup=True) for link in used.backup
    ]


def _largest_svc_mtu(found: LineCheck, spec: LineSpec, offered: tuple[Option, ...]) -> int | None:
    eligible = [option for option in offered if spec.transport in (AUTO, option.transport)]
    carried = [option.largest_svc_mtu for option in eligible if option.largest_svc_mtu is not None]
    if not carried:
        return None
    at_ports = [
        port.max_frame
        - ETHERNET_HEADER
        - VLAN_TAG * (spec.carried_tags + found.ends[side].tagging.selecting_tags)
        for side, port in found.ports.items()
    ]
    return min(max(carried), *at_ports)


@dataclass(frozen=True, slots=True)
class ChangeFeasibility:
    """The feasibility of a change, with the line before and after it.

    ``spec``: the line after the change. ``transport``: the present transport.
    """

    feasibility: Feasibility
    before: LineSpec
    spec: LineSpec
    transport: Transport
    needs_approval: bool

    @property
    def changes_nothing(self) -> bool:
        """Return whether the line stays the same, apart from its description."""
        return self.spec == self.before


def change_feasibility_of(
    *, user: User, vll: Vll, changes: Mapping[str, Any], now: datetime, expected_revision: int | None = None
) -> ChangeFeasibility:
    """Check everything that ``order_modify`` would check.

    Unlike ``order_modify``, this function does not refuse a request that changes nothing: ``changes_nothing``
    is then true, and the line keeps its transport.
    """
    before = content_of(vll)
    present = before.spec
    spec = present.changed(changes)
    refusals: list[DomainError] = []
    with _noting(refusals):
        check_orderable(vll, user, expected_revision=expected_revision)
    with _noting(refusals):
        check_in_service(vll)
    line = Existing(
        customer=vll.customer,
        leased=leased_by(vll, before),
        unchanged_path=unchanged_path(before, spec),
        preferred=before.allocated_transport if "transport" not in changes else None,
    )
    found = feasibility_of(user=user, spec=spec, now=now, line=line)
    if spec != present:
        try:
            check_not_swapped(before, spec)
            refusals += found.refusals
        except EndsSwapped as refusal:
            refusals.append(refusal)
    return ChangeFeasibility(
        feasibility=replace(found, refusals=refusals),
        before=present,
        spec=spec,
        transport=before.allocated_transport,
        needs_approval=waits_for_approval(user, vll.customer, present, spec),
    )


@contextmanager
def _noting(refusals: list[DomainError]) -> Iterator[None]:
    try:
        yield
    except DomainError as refusal:
        refusals.append(refusal)
