"""The leases of a line: its VLANs, bandwidth, tunnel identifiers and cores.

New values are leased before old ones are released. While both are needed, the owner of the new leases is the
UUID of an order or a reservation, not the UUID of the line. With the owner None, the functions that lease
only check, and write nothing.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet

from portal.accounts.models import Customer
from portal.allocation.bookings import BANDWIDTH, bandwidth_book
from portal.allocation.cpu_core_bookings import CORES, EndLoad
from portal.allocation.errors import VlanTaken, VniPoolExhausted
from portal.allocation.models import (
    BandwidthBooking,
    CoreBooking,
    GreKeyLease,
    GrePairLease,
    PortVlanLease,
    VniLease,
)
from portal.allocation.packet_capacity import end_load, weights_of
from portal.allocation.tunnel_leases import (
    cooldown_begin,
    gre_key_lease,
    gre_pair_lease,
    is_pair,
    lease_settle,
    leases_end,
    vni_available,
    vni_lease,
)
from portal.allocation.vlan_leases import (
    Keys,
    foreign_frames,
    free_outer_vlans,
    tag_keys,
    vlan_lease,
    vlans_release,
    vlans_settle,
    vlans_taken,
)
from portal.core.network.encapsulations import Encapsulation, Family, Transport
from portal.core.network.vlan_tags import Frames
from portal.inventory.models import Port
from portal.underlay.transport_selection import LineEnd, SelectedTransport
from portal.vll.errors import EndsAreTheSame, VlanCoolingOff
from portal.vll.line_revision import AllocatedEnd, LineRevision
from portal.vll.line_rules import Check
from portal.vll.line_spec import ANY, EndSpec
from portal.vll.models import TombstoneTunnel, Vll
from portal.vll.states import Lifecycle

# The frames that interfaces take which the portal does not manage: by port id, then by interface name.
ForeignFrames = Mapping[int, Mapping[str, Frames]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """The leases of ``owner`` that an order may use: of its line, or of a reservation.

    ``line``: the leased content; None for a reservation, which only has leases of ports. ``in_service``: the
    content on the line's routers. ``order``: the order that has leases, too. ``preferred``: the transport
    that ``auto`` keeps while it fits. ``unchanged_path``: the transport of a path that is in use and needs no
    further check of the underlay.
    """

    owner: UUID
    cir_bps: int
    ends: Mapping[str, AllocatedEnd]
    customer: Customer | None = None
    line: LineRevision | None = None
    in_service: LineRevision | None = None
    order: UUID | None = None
    preferred: Transport | None = None
    unchanged_path: SelectedTransport | None = None

    @property
    def owners(self) -> list[UUID]:
        """Return the owners whose bookings of cores the order may use."""
        return [self.owner] if self.order is None else [self.owner, self.order]

    def booked_bps(self, side: str, port: Port) -> int:
        """Return the rate that the end has booked on the port."""
        return self.cir_bps if self.ends[side].port == port.pk else 0

    def keeps_frames(self, side: str, end: EndSpec) -> bool:
        """Return whether the lease of the end also fits this request; "any" keeps the present VLAN."""
        before = self.ends[side]
        return (before.port, before.tagging, before.inner_vlan, before.exact_match) == (
            end.port,
            end.tagging,
            end.inner_vlan,
            end.exact_match,
        ) and end.requested_outer_vlan in (None, before.vlan)


def ends_lease(
    check: Check,
    *,
    ends: Mapping[str, EndSpec],
    cir_bps: int,
    owner: UUID | None,
    current: Current | None,
    now: datetime,
    foreign: ForeignFrames | None = None,
) -> dict[str, AllocatedEnd]:
    """Lease VLANs and bandwidth on both ports for ``owner``, as far as ``current`` does not include them.

    To lease, the caller has locked the ports. ``foreign``: the frames of foreign interfaces; None reads them.
    Refuses VlanTaken, VlanInForeignUse, VlanCoolingOff, NoVlanFree, PortFull.
    """
    contents = {}
    ports, own = check.ports, current.owner if current else None
    kept = {side for side, end in ends.items() if current and current.keeps_frames(side, end)}
    if foreign is None:
        foreign = foreign_frames(port for side, port in ports.items() if side not in kept)
    preferred = _free_at_the_other_end(check, ends, own, foreign)
    # Both ends may be on one port. What is checked for the first end is not free for the second.
    taken: dict[int, list[Keys]] = {}
    booked: dict[int, int] = {}
    # If both ends want the same frames, a rule has already refused that.
    same = any(isinstance(refusal, EndsAreTheSame) for refusal in check.refusals)
    # An end with "any" comes last, and avoids the other end's VLAN.
    for side, end in sorted(ends.items(), key=lambda each: each[1].outer_vlan == ANY):
        port, before = ports.get(side), current.ends[side] if current else None
        if port is None or port.customer is None or check.tags_refused(side):
            continue
        with check.noting(), removed_lines_named(port):
            if before is not None and side in kept:
                outer = before.vlan
            else:
                outer = vlan_lease(
                    port=port,
                    owner=owner,
                    side=side,
                    tags=end.tags,
                    now=now,
                    foreign=foreign.get(port.pk, {}),
                    own=own,
                    # The customer's equipment on that port uses the line's present VLAN.
                    preferred={before.vlan} if before and before.vlan else preferred,
                    besides=() if same else taken.get(port.pk, ()),
                )
            preferred = preferred if outer is None else {outer}
            contents[side] = AllocatedEnd.of(end, vlan=outer)
            if owner is None:
                taken.setdefault(port.pk, []).append(tag_keys(contents[side].leased_tags))
        own_bps = current.booked_bps(side, port) if current else 0
        if cir_bps > own_bps:
            besides = booked.get(port.pk, 0)
            with check.noting():
                bandwidth_book(
                    port=port, owner=owner, side=side, cir_bps=cir_bps, own_bps=own_bps, besides_bps=besides
                )
            booked[port.pk] = besides + cir_bps - own_bps
    return {side: contents[side] for side in ends if side in contents}


def _free_at_the_other_end(
    check: Check, ends: Mapping[str, EndSpec], own: UUID | None, foreign: ForeignFrames
) -> Collection[int]:
    """Return the free VLANs of the Z end if the portal chooses the VLANs of both ends; otherwise nothing.

    The A end then prefers these VLANs, so that both ends get the same one if possible.
    """
    port = check.ports.get("z")
    if port is None or check.tags_refused("z") or any(end.outer_vlan != ANY for end in ends.values()):
        return ()
    taken = vlans_taken(port, side="z", own=own)
    return set(free_outer_vlans(taken, foreign.get(port.pk, {}).values(), ends["z"].tags))


@contextmanager
def removed_lines_named(port: Port) -> Iterator[None]:
    """Raise VlanCoolingOff instead of VlanTaken if only removed lines of the port's customer have the VLAN.

    The error names the line, the time until which the line keeps the VLAN, and the request that frees the
    VLAN immediately. A user who may order on a port may order for the port's customer, and so may see these
    lines. If a line of a former customer of the port has the VLAN, the error stays VlanTaken and does not
    mention that line.
    """
    try:
        yield
    except VlanTaken as taken:
        owners = set(taken.owners)
        lines = Vll.objects.filter(
            pk__in=owners, customer=port.customer_id, lifecycle=Lifecycle.PENDING_TERMINATE
        )
        # Name the line that is removed last, because only its removal frees the VLAN.
        found = sorted(lines, key=lambda line: (line.wanted_present, line.decommission_at or line.created_at))
        if port.customer_id is None or not found or len(found) < len(owners):
            raise
        line = found[-1]
        # A removal that is under way ends without a user's action.
        until = line.decommission_at if line.wanted_present else None
        raise VlanCoolingOff(
            field=taken.field,
            port=taken.port,
            vlans=taken.vlans,
            whole_port_taken=taken.whole_port_taken,
            owners=taken.owners,
            line=str(line.pk),
            description=line.description,
            until=until,
            free_now=None if until is None else f"DELETE /api/v1/vlls/{line.pk}?cooling_off=0",
        ) from taken


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedTunnel:
    """The identifiers that the transport of a line needs. ``addresses``: the tunnel addresses by side."""

    vni: int | None = None
    gre_key: int | None = None
    addresses: Mapping[str, str | None]


def tunnel_lease(
    selected: SelectedTransport,
    ports: Mapping[str, Port],
    *,
    owner: UUID | None,
    line: LineRevision | None,
    now: datetime,
) -> LeasedTunnel:
    """Lease the identifiers that the transport needs and the line does not have yet.

    ``line``: the leased content of the line; None for a new line. Raises VniPoolExhausted, GreKeysExhausted,
    GrePairsExhausted.
    """
    transport = selected.transport
    routers = {side: port.router for side, port in ports.items()}
    if transport.family is None:
        return LeasedTunnel(addresses={"a": None, "z": None})
    addresses = {side: router.loopback(transport.family) for side, router in routers.items()}
    stays = line is not None and same_tunnel(line, transport, ports)
    if line is not None and stays:
        # An adopted line may use other addresses. A change of its rate is no reason to re-create its tunnel.
        addresses = {side: end.tunnel_address for side, end in line.ends.items()}
    if selected.gre_key:
        key = line.gre_key if line is not None else None
        if key is None and owner is not None:
            key = gre_key_lease(owner=owner, now=now)
        return LeasedTunnel(gre_key=key, addresses=addresses)
    if transport.encapsulation is Encapsulation.GRE:
        if line is None or line.gre_key is not None or not stays:
            a_address, z_address = gre_pair_lease(
                a_router=routers["a"], z_router=routers["z"], family=transport.family, owner=owner, now=now
            )
            addresses = {"a": a_address, "z": z_address}
        return LeasedTunnel(addresses=addresses)
    vni = line.vni if line is not None else None
    if vni is None and owner is not None:
        vni = vni_lease(owner=owner, now=now)
    elif vni is None and not vni_available():
        raise VniPoolExhausted
    return LeasedTunnel(vni=vni, addresses=addresses)


def gre_key_families(
    a: LineEnd, z: LineEnd, *, line: LineRevision | None, ports: Mapping[str, Port]
) -> frozenset[Family]:
    """Return the families over which a GRE tunnel between these routers would have a key.

    A new GRE tunnel has a key if both routers' VPPs distinguish tunnels by keys. A tunnel without a key keeps
    its own pair of addresses until it must be re-created: the portal does not interrupt a line in service to
    add a key. ``line``: the present content of the line; None for a new line.
    """
    if not (a.gre_keys and z.gre_keys):
        return frozenset()
    families = frozenset(Family)
    if line is None or line.encapsulation != Encapsulation.GRE or line.gre_key is not None:
        return families
    stays = same_tunnel(line, line.allocated_transport, ports)
    return families - {line.allocated_transport.family} if stays else families


def same_tunnel(line: LineRevision, transport: Transport, ports: Mapping[str, Port]) -> bool:
    """Return whether the line keeps its tunnel and its addresses with this transport and these ports.

    ``ports``: the wanted ports by side. Only their routers count.
    """
    same = (line.encapsulation, line.family) == (transport.encapsulation, transport.family)
    before = Port.objects.filter(pk__in={line.a_end.port, line.z_end.port}).values_list("pk", "router")
    routers = dict(before)
    return same and all(routers[end.port] == ports[side].router_id for side, end in line.ends.items())


def core_loads(ports: Mapping[str, Port], *, cir_bps: int, transport: Transport) -> dict[str, EndLoad]:
    """Return the core loads that the ends of a line on these ports would add to their routers."""
    return {
        side: EndLoad(router=port.router, load=end_load(cir_bps, transport, weights_of(port.router)))
        for side, port in ports.items()
    }


def leases_settle(
    content: LineRevision,
    *,
    owner: UUID,
    spare: UUID,
    now: datetime,
    leftover: Mapping[str, UUID] | None = None,
) -> None:
    """Give ``owner`` exactly the leases that ``content`` needs, from the leases of ``owner`` and ``spare``.

    The other leases of both owners are released. ``leftover``: by side, the UUID that keeps the leases at an
    old router, which has not confirmed the removal of the end. Tunnels that a tombstone names are
    quarantined.
    """
    _ports_settle(content, owner=owner, spare=spare, leftover=leftover or {})
    wanted = tunnel_conditions(content)
    for column, of in TUNNEL_LEASES.items():
        lease_settle(
            of.objects.all(),
            wanted[column],
            owner=owner,
            spare=spare,
            kept=_kept(column),
            rest=_rest(),
            now=now,
        )


def tunnel_conditions(content: LineRevision) -> dict[str, Q | None]:
    """Return the condition for each kind of lease; None for a kind that the tunnel does not need."""
    return {
        "vni": None if content.vni is None else Q(vni=content.vni),
        "gre_key": None if content.gre_key is None else Q(gre_key=content.gre_key),
        "gre_pair": None if content.gre_pair is None else is_pair(content.gre_pair),
    }


def _ports_settle(content: LineRevision, *, owner: UUID, spare: UUID, leftover: Mapping[str, UUID]) -> None:
    """Settle the leases of ports and their routers.

    Bandwidth comes first: it locks the ports, as an order does before it leases VLANs. The routers' sums come
    last, as in an order.
    """
    BANDWIDTH.settle(
        owner=owner,
        spare=spare,
        wanted={side: (end.port, content.cir_bps) for side, end in content.ends.items()},
        leftover=leftover,
    )
    ports = Port.objects.select_related("router").in_bulk({end.port for end in content.ends.values()})
    loads = core_loads(
        {side: ports[end.port] for side, end in content.ends.items()},
        cir_bps=content.cir_bps,
        transport=content.allocated_transport,
    )
    CORES.settle(
        owner=owner,
        spare=spare,
        wanted={side: (end.router.pk, end.load) for side, end in loads.items()},
        leftover=leftover,
    )
    vlans_settle(
        owner=owner,
        spare=spare,
        wanted={side: (end.port, tag_keys(end.leased_tags)) for side, end in content.ends.items()},
        leftover=leftover,
    )


def leases_release(owner: UUID, *, now: datetime) -> None:
    """Release everything: VLANs and bandwidth immediately; VNI, GRE key and pair after their cool-down."""
    ports_release(owner)
    tunnel_release(owner, now=now)


def ports_release(owner: UUID, *, kept_at: Collection[tuple[str, int]] = ()) -> None:
    """Release the owner's VLANs and bandwidth at its ports, and its bookings of the routers' cores.

    ``kept_at``: pairs of side and router id whose leases and bookings stay.
    """
    # Bandwidth first: it locks the ports, as an order does before it leases the same VLANs.
    BANDWIDTH.release(owner=owner, kept_at=kept_at)
    CORES.release(owner=owner, kept_at=kept_at)
    vlans_release(owner=owner, kept_at=kept_at)


def ports_keep(owner: UUID, *, side: str, keeper: UUID) -> None:
    """Transfer the leases at a side's port and router to ``keeper``, which releases them later."""
    for model in (BandwidthBooking, CoreBooking, PortVlanLease):
        model.objects.filter(owner=owner, side=side).update(owner=keeper)


def tunnel_release(owner: UUID, *, now: datetime) -> None:
    """Release VNI, GRE key and pair after their cool-down. Those that a tombstone names are quarantined."""
    for column, of in TUNNEL_LEASES.items():
        leases_end(of.objects.filter(owner=owner), kept=_kept(column), rest=_rest(), now=now)


def tunnels_cool_down(tunnels: Collection[TombstoneTunnel], *, now: datetime) -> None:
    """End the quarantine of the leases of these tunnels, except of leases that a tombstone still names."""
    for column, of in TUNNEL_LEASES.items():
        ids = [getattr(tunnel, f"{column}_id") for tunnel in tunnels]
        unnamed = of.objects.filter(pk__in=filter(None, ids)).exclude(pk__in=_kept(column))
        cooldown_begin(unnamed, rest=_rest(), now=now)


# The kinds of leases of tunnels, by the column in which a tombstone names the lease.
TUNNEL_LEASES: dict[str, Any] = {"vni": VniLease, "gre_key": GreKeyLease, "gre_pair": GrePairLease}


def _kept(column: str) -> QuerySet[Any]:
    """Return the leases that a tombstone names."""
    named = TombstoneTunnel.objects.filter(**{f"{column}__isnull": False})
    kept: QuerySet[Any] = TUNNEL_LEASES[column].objects.filter(pk__in=named.values(column))
    return kept


def _rest() -> timedelta:
    return timedelta(seconds=settings.LONGLINE_HOLD_DOWN_S)
