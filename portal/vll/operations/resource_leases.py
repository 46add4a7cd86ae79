"""Lease the resources that a line lacks, and later release those that it no longer needs.

New values are leased before old ones are released. While both are needed, the owner of the new leases is the
UUID of an order or a reservation, not the UUID of the line.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from portal.allocation.bandwidth_bookings import bandwidth_book, bandwidth_release, bandwidth_settle
from portal.allocation.cpu_core_bookings import cores_book, cores_release, cores_settle
from portal.allocation.gre_leases import (
    gre_key_lease,
    gre_key_release,
    gre_pair_lease,
    gre_pair_release,
    gre_pair_settle,
)
from portal.allocation.models import (
    BandwidthBooking,
    CoreBooking,
    GreKeyLease,
    GrePairLease,
    PortVlanLease,
    VniLease,
)
from portal.allocation.tunnel_lease_cooldown import cooldown_begin, lease_settle
from portal.allocation.vlan_leases import (
    foreign_frames,
    free_outer_vlans,
    tag_keys,
    vlan_lease,
    vlans_release,
    vlans_settle,
    vlans_taken,
)
from portal.allocation.vni_leases import vni_lease, vni_release
from portal.core.network.encapsulations import Encapsulation
from portal.core.network.vlan_tags import Frames
from portal.inventory.models import Port
from portal.vll.cooling_off_vlans import removed_lines_named
from portal.vll.gre_key_rules import same_tunnel
from portal.vll.line_spec import AllocatedEnd, EndSpec, LineRevision
from portal.vll.models import TombstoneTunnel
from portal.vll.operations.end_validation import named_first
from portal.vll.operations.line_request_check import Accepted, core_loads


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased:
    """The leases of ``owner``. ``line`` is None for a reservation, which only has leases of ports."""

    owner: UUID
    cir_bps: int
    ends: Mapping[str, AllocatedEnd]
    line: LineRevision | None = None


def ends_lease(
    *,
    ends: Mapping[str, EndSpec],
    ports: Mapping[str, Port],
    cir_bps: int,
    owner: UUID,
    leased: Leased | None,
    now: datetime,
    adopted: bool = False,
) -> dict[str, AllocatedEnd]:
    """Lease VLANs and bandwidth on both ports for ``owner``, as far as ``leased`` does not include them.

    ``adopted``: the routers have both ends already, as interfaces that the portal does not manage yet. The
    caller has locked the ports. Raises VlanTaken, VlanInForeignUse, VlanCoolingOff, NoVlanFree, PortFull.
    """
    contents = {}
    new = [side for side, end in ends.items() if not (leased and same_frames(leased.ends[side], end))]
    # The interfaces of an adopted end are still foreign. They will become this end, so do not count them.
    foreign = foreign_frames(() if adopted else (ports[side] for side in new))
    preferred = _free_at_the_other_end(ends, ports, leased, foreign)
    for side, end in named_first(ends):
        port, before = ports[side], leased.ends[side] if leased else None
        if before is not None and side not in new:
            outer = before.vlan
        else:
            with removed_lines_named(port):
                outer = vlan_lease(
                    port=port,
                    owner=owner,
                    side=side,
                    tagging=end.tagging,
                    outer=end.requested_outer_vlan,
                    inner=end.inner_vlan,
                    exact_match=end.exact_match,
                    now=now,
                    foreign=foreign.get(port.pk, {}),
                    own=leased.owner if leased else None,
                    # The customer's equipment on that port uses the line's present VLAN.
                    preferred={before.vlan} if before and before.vlan else preferred,
                )
        preferred = preferred if outer is None else {outer}
        booked = leased.cir_bps if leased and before and before.port == port.pk else 0
        if cir_bps > booked:
            bandwidth_book(port=port, owner=owner, side=side, cir_bps=cir_bps, own_bps=booked)
        contents[side] = end.allocated(vlan=outer)
    return {side: contents[side] for side in ends}


def _free_at_the_other_end(
    ends: Mapping[str, EndSpec],
    ports: Mapping[str, Port],
    leased: Leased | None,
    foreign: Mapping[int, Mapping[str, Frames]],
) -> Collection[int]:
    """Return the free VLANs of the Z end if the portal chooses the VLANs of both ends; otherwise nothing.

    The A end then prefers these VLANs, so that both ends get the same one if possible.
    """
    if any(end.outer_vlan != "any" for end in ends.values()):
        return ()
    end = ends["z"]
    taken = vlans_taken(ports["z"], side="z", own=leased.owner if leased else None)
    return set(
        free_outer_vlans(
            taken,
            foreign.get(ports["z"].pk, {}).values(),
            tagging=end.tagging,
            inner=end.inner_vlan,
            exact_match=end.exact_match,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedTunnel:
    """The identifiers that the transport of a line needs. ``addresses``: the tunnel addresses by side."""

    vni: int | None = None
    gre_key: int | None = None
    addresses: Mapping[str, str | None]


def transport_lease(*, accepted: Accepted, owner: UUID, leased: Leased | None, now: datetime) -> LeasedTunnel:
    """Lease the identifiers that the transport needs and the line does not have yet.

    Raises VniPoolExhausted, GreKeysExhausted, GrePairsExhausted.
    """
    transport = accepted.selected.transport
    routers = {side: port.router for side, port in accepted.ports.items()}
    line = leased.line if leased else None
    if transport.family is None:
        return LeasedTunnel(addresses={"a": None, "z": None})
    addresses = {side: router.loopback(transport.family) for side, router in routers.items()}
    if line is not None and same_tunnel(line, transport, accepted.ports):
        # An adopted line may use other addresses. A change of its rate is no reason to re-create its tunnel.
        addresses = {side: end.tunnel_address for side, end in line.ends.items()}
    if accepted.selected.gre_key:
        kept = line.gre_key if line is not None else None
        key = gre_key_lease(owner=owner, now=now) if kept is None else kept
        return LeasedTunnel(gre_key=key, addresses=addresses)
    if transport.encapsulation is Encapsulation.GRE:
        if line is not None and line.gre_key is None and same_tunnel(line, transport, accepted.ports):
            return LeasedTunnel(addresses={side: end.tunnel_address for side, end in line.ends.items()})
        a_address, z_address = gre_pair_lease(
            a_router=routers["a"], z_router=routers["z"], family=transport.family, owner=owner, now=now
        )
        return LeasedTunnel(addresses={"a": a_address, "z": z_address})
    kept = line.vni if line is not None else None
    vni = vni_lease(owner=owner, now=now) if kept is None else kept
    return LeasedTunnel(vni=vni, addresses=addresses)


def cores_lease(*, accepted: Accepted, owner: UUID, own: Collection[UUID]) -> None:
    """Book the routers' cores for ``owner``, minus the bookings of ``own``. Raises RouterFull.

    Call it after all other leases of an order.
    """
    transport = accepted.selected.transport
    ends = core_loads(accepted.ports, cir_bps=accepted.spec.cir_bps, transport=transport)
    cores_book(ends=ends, transport=transport, owner=owner, own=own)


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
    arguments: dict[str, Any] = {"owner": owner, "spare": spare, "rest": _rest(), "now": now}
    lease_settle(VniLease, "vni", wanted=content.vni, kept=_kept_vnis(), **arguments)
    lease_settle(GreKeyLease, "gre_key", wanted=content.gre_key, kept=_kept_gre_keys(), **arguments)
    gre_pair_settle(wanted=content.gre_pair, kept=_kept_gre_pairs(), **arguments)


def _ports_settle(content: LineRevision, *, owner: UUID, spare: UUID, leftover: Mapping[str, UUID]) -> None:
    """Settle the leases of ports and their routers.

    Bandwidth comes first: it locks the ports, as an order does before it leases VLANs. The routers' sums come
    last, as in an order.
    """
    bandwidth_settle(
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
    cores_settle(
        owner=owner,
        spare=spare,
        wanted={side: (end.router.pk, end.load) for side, end in loads.items()},
        leftover=leftover,
    )
    vlans_settle(
        owner=owner,
        spare=spare,
        wanted={side: (end.port, _keys(end)) for side, end in content.ends.items()},
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
    bandwidth_release(owner=owner, kept_at=kept_at)
    cores_release(owner=owner, kept_at=kept_at)
    vlans_release(owner=owner, kept_at=kept_at)


def ports_keep(owner: UUID, *, side: str, keeper: UUID) -> None:
    """Transfer the leases at a side's port and router to ``keeper``, which releases them later."""
    for model in (BandwidthBooking, CoreBooking, PortVlanLease):
        model.objects.filter(owner=owner, side=side).update(owner=keeper)


def tunnel_release(owner: UUID, *, now: datetime) -> None:
    """Release VNI, GRE key and pair after their cool-down. Those that a tombstone names are quarantined."""
    vni_release(owner=owner, kept=_kept_vnis(), rest=_rest(), now=now)
    gre_key_release(owner=owner, kept=_kept_gre_keys(), rest=_rest(), now=now)
    gre_pair_release(owner=owner, kept=_kept_gre_pairs(), rest=_rest(), now=now)


def tunnels_cool_down(
    *, vnis: Collection[int], gre_keys: Collection[int], gre_pairs: Collection[int], now: datetime
) -> None:
    """End the quarantine of these leases (ids), except of leases that a tombstone still names."""
    unnamed_vnis = VniLease.objects.filter(pk__in=vnis).exclude(pk__in=_kept_vnis())
    unnamed_keys = GreKeyLease.objects.filter(pk__in=gre_keys).exclude(pk__in=_kept_gre_keys())
    unnamed_pairs = GrePairLease.objects.filter(pk__in=gre_pairs).exclude(pk__in=_kept_gre_pairs())
    cooldown_begin(unnamed_vnis, rest=_rest(), now=now)
    cooldown_begin(unnamed_keys, rest=_rest(), now=now)
    cooldown_begin(unnamed_pairs, rest=_rest(), now=now)


def _kept_vnis() -> QuerySet[VniLease]:
    named = TombstoneTunnel.objects.filter(vni__isnull=False)
    return VniLease.objects.filter(pk__in=named.values("vni"))


def _kept_gre_keys() -> QuerySet[GreKeyLease]:
    named = TombstoneTunnel.objects.filter(gre_key__isnull=False)
    return GreKeyLease.objects.filter(pk__in=named.values("gre_key"))


def _kept_gre_pairs() -> QuerySet[GrePairLease]:
    named = TombstoneTunnel.objects.filter(gre_pair__isnull=False)
    return GrePairLease.objects.filter(pk__in=named.values("gre_pair"))


def _rest() -> timedelta:
    return timedelta(seconds=settings.LONGLINE_HOLD_DOWN_S)


def same_frames(before: AllocatedEnd, end: EndSpec) -> bool:
    """Return whether the existing lease also fits this request; "any" keeps the present VLAN."""
    requested = end.requested_outer_vlan
    return (before.port, before.tagging, before.inner_vlan, before.exact_match) == (
        end.port,
        end.tagging,
        end.inner_vlan,
        end.exact_match,
    ) and requested in (None, before.vlan)


def _keys(end: AllocatedEnd) -> tuple[int, int]:
    return tag_keys(end.tagging, outer=end.vlan, inner=end.inner_vlan, exact_match=end.exact_match)
