"""Leasing VLANs on a port: an insert that the exclusion constraint may refuse."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.backends.postgresql.psycopg_any import NumericRange
from django.db.models import Q

from portal.allocation.errors import NoVlanFree, VlanTaken
from portal.allocation.models import PortVlanLease
from portal.allocation.vlan_ranges import WHOLE_PORT, Keys, overlap, tag_keys
from portal.core.vlan_tags import MAX_VLAN, MIN_VLAN, Tagging
from portal.inventory.models import ObservedCircuit, Port

# VLAN 1 is the native one of most switches, and the next few are often their management's.
_FROM = 100
_OFFERED = (*range(_FROM, MAX_VLAN + 1), *range(MIN_VLAN + 1, _FROM), MIN_VLAN)

_LEASE = """
INSERT INTO allocation_portvlanlease (port_id, holder, side, keys, leased_at)
VALUES (%(port)s, %(holder)s, %(side)s, int8range(%(low)s, %(high)s), %(now)s)
ON CONFLICT ON CONSTRAINT vlan_leased_once_per_port DO NOTHING
"""


def vlan_lease(
    *,
    port: Port,
    holder: UUID,
    side: str,
    tagging: Tagging,
    outer: int | None,
    inner: int | None,
    exact_match: bool,
    now: datetime,
    own: UUID | None = None,
    preferred: Collection[int] = (),
) -> int | None:
    """Lease these tags for ``holder``; the outer VLAN, or None for a whole port.

    Raises VlanTaken, NoVlanFree.

    ``outer`` None on a tagged service means any free one, of those ``preferred`` where one is free. ``own``
    is who may hold frames of this end already: where its lease overlaps, that is widened until
    ``vlans_settle`` says which of both values stays.

    The caller holds the port's row lock, which makes "any" deterministic; uniqueness itself is the
    constraint's work and needs no lock.
    """
    mine = PortVlanLease.objects.filter(port=port, holder=own, side=side).first() if own else None
    if tagging is not Tagging.UNTAGGED and outer is None:
        taken = vlans_taken(port, side=side, own=own)
        outer = vlan_choose(
            port=port,
            side=side,
            tagging=tagging,
            outer=None,
            inner=inner,
            exact_match=exact_match,
            taken=taken,
            preferred=preferred,
        )
    keys = tag_keys(tagging, outer=outer, inner=inner, exact_match=exact_match)
    if mine is not None and overlap(_keys(mine), keys):
        leased = _widen(mine, keys)
    else:
        leased = _insert(port, holder, side, keys, now)
    if not leased:
        raise _taken(port, side, tagging, outer, inner, keys)
    return outer


def vlan_choose(
    *,
    port: Port,
    side: str,
    tagging: Tagging,
    outer: int | None,
    inner: int | None,
    exact_match: bool,
    taken: list[Keys],
    preferred: Collection[int] = (),
) -> int | None:
    """The outer VLAN that a lease beside ``taken`` would get; writes nothing.

    Raises VlanTaken, NoVlanFree.
    """
    if tagging is not Tagging.UNTAGGED and outer is None:
        others = outer_vlans_of_others(port)
        free = [
            vlan
            for vlan in free_outer_vlans(taken, tagging=tagging, inner=inner, exact_match=exact_match)
            if vlan not in others
        ]
        if not free:
            raise NoVlanFree(field=f"{side}_end.outer_vlan", port=str(port))
        return next((vlan for vlan in free if vlan in preferred), free[0])
    keys = tag_keys(tagging, outer=outer, inner=inner, exact_match=exact_match)
    if any(overlap(keys, others) for others in taken):
        raise _taken(port, side, tagging, outer, inner, keys)
    return outer


def vlans_taken(port: Port, *, side: str = "", own: UUID | None = None) -> list[Keys]:
    """The key ranges that are leased on a port, but for what ``own`` holds for ``side``."""
    leases = PortVlanLease.objects.filter(port=port)
    if own is not None:
        leases = leases.exclude(holder=own, side=side)
    return [(keys.lower, keys.upper) for keys in leases.values_list("keys", flat=True)]


def outer_vlans_of_others(port: Port) -> set[int]:
    """Those by which the router shows somebody else's lines on the port: an order for one would fail."""
    here = Q(sides__near__attachment__port=port.interface) | Q(sides__far__attachment__port=port.interface)
    shown = ObservedCircuit.objects.filter(here, router=port.router_id)
    attachments = (
        side["attachment"]
        for sides in shown.values_list("sides", flat=True)
        for side in (sides["near"], sides["far"])
        if side is not None and side["attachment"] is not None
    )
    return {each["outer"] for each in attachments if each["port"] == port.interface}


def free_outer_vlans(
    taken: Iterable[Keys], *, tagging: Tagging, inner: int | None, exact_match: bool
) -> list[int]:
    """The outer VLANs that a service of this kind could still have, the rarely used ones first."""
    blocked = set()
    for others in taken:
        if others == WHOLE_PORT:
            return []
        # Every other lease lies under one outer VLAN.
        outer = (others[0] >> 12) & 0xFFF
        if overlap(tag_keys(tagging, outer=outer, inner=inner, exact_match=exact_match), others):
            blocked.add(outer)
    return [outer for outer in _OFFERED if outer not in blocked]


def vlans_settle(
    *,
    holder: UUID,
    spare: UUID,
    wanted: Mapping[str, tuple[int, Keys]],
    leftover: Mapping[str, UUID],
) -> None:
    """Make ``holder`` hold exactly ``wanted``, side -> (port id, keys), out of what both hold now.

    The rest is given back; on a side that ``leftover`` names it goes to that holder instead.
    """
    leases = list(PortVlanLease.objects.filter(holder__in=(holder, spare)).order_by("pk"))
    kept: list[PortVlanLease] = []
    for lease in leases:
        port, keys = wanted[lease.side]
        low, high = _keys(lease)
        if lease.port_id == port and low <= keys[0] and keys[1] <= high:
            kept.append(lease)
        elif lease.side in leftover:
            PortVlanLease.objects.filter(pk=lease.pk).update(holder=leftover[lease.side])
        else:
            lease.delete()
    # Afterwards, so that no side has two leases of one holder for a moment.
    for lease in kept:
        keys = wanted[lease.side][1]
        PortVlanLease.objects.filter(pk=lease.pk).update(holder=holder, keys=NumericRange(*keys))


def vlans_release(*, holder: UUID, kept_at: Collection[tuple[str, int]] = ()) -> None:
    """Give back a holder's VLANs at once, but at ``kept_at`` (side, router id): a VLAN needs no rest."""
    for lease in PortVlanLease.objects.filter(holder=holder).select_related("port"):
        if (lease.side, lease.port.router_id) not in kept_at:
            lease.delete()


def _insert(port: Port, holder: UUID, side: str, keys: Keys, now: datetime) -> bool:
    low, high = keys
    with connection.cursor() as cursor:
        cursor.execute(
            _LEASE, {"port": port.pk, "holder": holder, "side": side, "low": low, "high": high, "now": now}
        )
        return bool(cursor.rowcount)


def _widen(lease: PortVlanLease, keys: Keys) -> bool:
    low, high = _keys(lease)
    wider = NumericRange(min(low, keys[0]), max(high, keys[1]))
    try:
        with transaction.atomic():
            PortVlanLease.objects.filter(pk=lease.pk).update(keys=wider)
    except IntegrityError as error:
        if "vlan_leased_once_per_port" not in str(error):
            raise
        return False
    return True


def _keys(lease: PortVlanLease) -> Keys:
    return lease.keys.lower, lease.keys.upper


def _taken(
    port: Port, side: str, tagging: Tagging, outer: int | None, inner: int | None, keys: Keys
) -> VlanTaken:
    field = f"{side}_end.port" if tagging is Tagging.UNTAGGED else f"{side}_end.outer_vlan"
    vlans = None if tagging is Tagging.UNTAGGED else ".".join(str(vlan) for vlan in (outer, inner) if vlan)
    leases = list(PortVlanLease.objects.filter(port=port))
    return VlanTaken(
        field=field,
        port=str(port),
        vlans=vlans,
        whole_port_taken=any(_keys(lease) == WHOLE_PORT for lease in leases),
        holders=tuple(lease.holder for lease in leases if overlap(_keys(lease), keys)),
    )
