"""Leasing what a line needs beside what is leased for it already, and afterwards giving back the rest.

New values are leased before old ones are given back: for as long as both are needed, the new ones are
held under another UUID (an order's, a hold's) than the line's own.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from portal.allocation.bandwidth import bandwidth_book, bandwidth_release, bandwidth_settle
from portal.allocation.capacity import end_load
from portal.allocation.cores import cores_book, cores_release, cores_settle
from portal.allocation.gre_pairs import gre_pair_lease, gre_pair_release, gre_pair_settle
from portal.allocation.tag_keys import tag_keys
from portal.allocation.vlans import vlan_lease, vlans_release, vlans_settle
from portal.allocation.vnis import vni_lease, vni_release, vni_settle
from portal.core.transport import Encapsulation, Transport
from portal.inventory.models import Port
from portal.vll.content import Content, EndContent
from portal.vll.operations.assess import Accepted, core_loads
from portal.vll.operations.endpoints import EndRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased:
    """What ``owner`` holds already. ``line`` is None where that is no more than ports (a hold)."""

    owner: UUID
    cir_bps: int
    ends: Mapping[str, EndContent]
    line: Content | None = None


def ends_lease(
    *,
    ends: Mapping[str, EndRequest],
    ports: Mapping[str, Port],
    cir_bps: int,
    holder: UUID,
    leased: Leased | None,
    now: datetime,
) -> dict[str, EndContent]:
    """Lease VLANs and bandwidth on both ports for ``holder``, as far as ``leased`` does not have them.

    The caller holds the ports' locks. Raises VlanTaken, NoVlanFree, PortFull.
    """
    contents = {}
    for side, end in ends.items():
        port, before = ports[side], leased.ends[side] if leased else None
        if before is not None and _same_frames(before, end):
            outer = before.outer_vlan
        else:
            outer = vlan_lease(
                port=port,
                holder=holder,
                side=side,
                tagging=end.tagging,
                outer=end.requested_outer_vlan,
                inner=end.inner_vlan,
                exact_match=end.exact_match,
                now=now,
                own=leased.owner if leased else None,
            )
        booked = leased.cir_bps if leased and before and before.port == port.pk else 0
        if cir_bps > booked:
            bandwidth_book(port=port, holder=holder, side=side, cir_bps=cir_bps, own_bps=booked)
        contents[side] = EndContent(
            port=port.pk,
            tagging=end.tagging,
            requested_outer_vlan=end.requested_outer_vlan,
            outer_vlan=outer,
            inner_vlan=end.inner_vlan,
            exact_match=end.exact_match,
            tunnel_address=None,
        )
    return contents


def transport_lease(
    *, accepted: Accepted, holder: UUID, leased: Leased | None, now: datetime
) -> tuple[int | None, dict[str, str | None]]:
    """The VNI, if this transport has one, and the tunnel's address at each side.

    Raises VniPoolExhausted, GrePairsExhausted.
    """
    transport = accepted.serviceable.transport
    routers = {side: port.router for side, port in accepted.ports.items()}
    line = leased.line if leased else None
    if transport.family is None:
        return None, {"a": None, "z": None}
    if transport.encapsulation is Encapsulation.GRE:
        if line is not None and same_tunnel(line, transport, accepted.ports):
            return None, {side: end.tunnel_address for side, end in line.ends.items()}
        a_address, z_address = gre_pair_lease(
            a_router=routers["a"], z_router=routers["z"], family=transport.family, holder=holder, now=now
        )
        return None, {"a": a_address, "z": z_address}
    kept = line.vni if line is not None else None
    vni = vni_lease(holder=holder, now=now) if kept is None else kept
    return vni, {side: router.loopback(transport.family) for side, router in routers.items()}


def cores_lease(*, accepted: Accepted, holder: UUID, own: Collection[UUID]) -> None:
    """Book the routers' cores, beside what the holders of ``own`` have; the last thing that an order leases.

    Raises RouterFull.
    """
    transport = accepted.serviceable.transport
    ends = core_loads(accepted.ports, cir_bps=accepted.request.cir_bps, transport=transport)
    cores_book(ends=ends, transport=transport, holder=holder, own=own)


def leases_settle(
    content: Content,
    *,
    holder: UUID,
    spare: UUID,
    now: datetime,
    leftover: Mapping[str, UUID] | None = None,
) -> None:
    """Make ``holder`` hold exactly what ``content`` needs, out of what it and ``spare`` hold now.

    The rest is given back; ``leftover`` names, by side, who keeps what an old router has not confirmed
    to be gone.
    """
    kept_by = leftover or {}
    ports_settle(content, holder=holder, spare=spare, leftover=kept_by)
    rest = timedelta(seconds=settings.LONGLINE_HOLD_DOWN_S)
    quarantine = next(iter(kept_by.values()), None)
    vni_settle(holder=holder, spare=spare, wanted=content.vni, leftover=quarantine, rest=rest, now=now)
    gre_pair_settle(
        holder=holder, spare=spare, wanted=_gre_pair(content), leftover=quarantine, rest=rest, now=now
    )


def ports_settle(content: Content, *, holder: UUID, spare: UUID, leftover: Mapping[str, UUID]) -> None:
    """As ``leases_settle`` for what is leased of ports and their routers, and not for the tunnel.

    Bandwidth first: that locks the ports, as an order does before it asks for VLANs. Then the routers' sums,
    which an order asks for last of all.
    """
    bandwidth_settle(
        holder=holder,
        spare=spare,
        wanted={side: (end.port, content.cir_bps) for side, end in content.ends.items()},
        leftover=leftover,
    )
    load = end_load(content.cir_bps, content.transport)
    routers = dict(
        Port.objects.filter(pk__in={end.port for end in content.ends.values()}).values_list("pk", "router")
    )
    cores_settle(
        holder=holder,
        spare=spare,
        wanted={side: (routers[end.port], load) for side, end in content.ends.items()},
        leftover=leftover,
    )
    vlans_settle(
        holder=holder,
        spare=spare,
        wanted={side: (end.port, _keys(end)) for side, end in content.ends.items()},
        leftover=leftover,
    )


def leases_release(holder: UUID, *, now: datetime) -> None:
    """Give everything back: VLANs and bandwidth at once, VNI and GRE pair after their hold-down."""
    rest = timedelta(seconds=settings.LONGLINE_HOLD_DOWN_S)
    ports_release(holder)
    vni_release(holder=holder, rest=rest, now=now)
    gre_pair_release(holder=holder, rest=rest, now=now)


def ports_release(holder: UUID) -> None:
    """Give back what is leased of ports and their routers, and not what is leased of the tunnel."""
    # Bandwidth first: that locks the ports, as an order for the same VLANs does before it asks for them.
    bandwidth_release(holder=holder)
    cores_release(holder=holder)
    vlans_release(holder=holder)


def tunnel_keep(holder: UUID, *, keeper: UUID, now: datetime) -> None:
    """Hand the holder's VNI, or its GRE pair, to ``keeper``, who gives it back some day."""
    vni_settle(holder=holder, spare=holder, wanted=None, leftover=keeper, rest=None, now=now)
    gre_pair_settle(holder=holder, spare=holder, wanted=None, leftover=keeper, rest=None, now=now)


def _same_frames(before: EndContent, end: EndRequest) -> bool:
    """Whether the lease of before serves this request too; "any" is content with what it has."""
    asked = end.requested_outer_vlan
    return (before.port, before.tagging, before.inner_vlan, before.exact_match) == (
        end.port,
        end.tagging,
        end.inner_vlan,
        end.exact_match,
    ) and asked in (None, before.outer_vlan)


def same_tunnel(line: Content, transport: Transport, ports: Mapping[str, Port]) -> bool:
    """Whether the line's tunnel serves it between these ports (by side) too, addresses and all."""
    same = (line.encapsulation, line.family) == (transport.encapsulation, transport.family)
    before = Port.objects.filter(pk__in={line.a.port, line.z.port}).values_list("pk", "router")
    routers = dict(before)
    return same and all(routers[end.port] == ports[side].router_id for side, end in line.ends.items())


def _keys(end: EndContent) -> tuple[int, int]:
    return tag_keys(end.tagging, outer=end.outer_vlan, inner=end.inner_vlan, exact_match=end.exact_match)


def _gre_pair(content: Content) -> tuple[str, str] | None:
    a_address, z_address = content.a.tunnel_address, content.z.tunnel_address
    if content.encapsulation != Encapsulation.GRE or a_address is None or z_address is None:
        return None
    return a_address, z_address
