"""Leases of VLANs on a port: an insert that the exclusion constraint may refuse.

The frames that an end takes from its port are a range of integers, because PostgreSQL can exclude overlapping
ranges. A key is ``tpid_bit << 24 | outer << 12 | inner``. ``tpid_bit`` is 1 for an outer 0x88a8 and 0 for
0x8100; ``inner`` is 0 for a frame with one tag. Ranges are half-open.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.backends.postgresql.psycopg_any import NumericRange

from portal.allocation.errors import NoVlanFree, VlanInForeignUse, VlanTaken
from portal.allocation.models import PortVlanLease
from portal.core.db.statements import execute, rows_of
from portal.core.network.vlan_tags import MANY_TAGS, MAX_VLAN, MIN_VLAN, Frames, Tagging, Tags
from portal.inventory.models import Port

Keys = tuple[int, int]
WHOLE_PORT: Keys = (0, 2**25)


def tag_keys(tags: Tags) -> Keys:
    """Return the half-open range of keys for the frames that an end with these tags takes.

    A sub-interface that is not exact-match also takes frames with more tags than it is configured with (VPP
    src/vnet/ethernet/node.c). A sub-interface with only an outer VLAN therefore excludes every inner VLAN.
    """
    if tags.tagging is Tagging.UNTAGGED:
        return WHOLE_PORT
    if tags.outer is None:
        raise ValueError(f"{tags.tagging} needs an outer VLAN")
    base = (1 << 24 if tags.tagging is Tagging.DOT1AD else 0) | tags.outer << 12
    if tags.tagging is Tagging.DOT1Q:
        return (base, base + 1) if tags.exact_match else (base, base + 4096)
    if tags.inner is None:
        raise ValueError(f"{tags.tagging} needs an inner VLAN")
    return (base | tags.inner, (base | tags.inner) + 1)


def overlap(one: Keys, other: Keys) -> bool:
    """Return whether the ranges share a frame. Of two overlapping ranges, one contains the other."""
    return one[0] < other[1] and other[0] < one[1]


# VLAN 1 is the native VLAN of most switches. The next few VLANs often carry the management of switches.
_FROM = 100
_OFFERED = (*range(_FROM, MAX_VLAN + 1), *range(MIN_VLAN + 1, _FROM), MIN_VLAN)

_LEASE = """
INSERT INTO allocation_portvlanlease (port_id, holder, side, keys, leased_at)
VALUES (%(port)s, %(owner)s, %(side)s, int8range(%(low)s, %(high)s), %(now)s)
ON CONFLICT ON CONSTRAINT vlan_leased_once_per_port DO NOTHING
"""

# Sub-interfaces of each port with their frames, and circuits that end on it.
_FOREIGN = """
WITH port AS (
    SELECT * FROM unnest(%(ports)s::bigint[], %(routers)s::bigint[], %(interfaces)s::text[])
        AS port (id, router_id, interface)
)
SELECT port.id, name, frames FROM port
JOIN inventory_observedinterface sub ON sub.router_id = port.router_id AND sub.parent = port.interface
WHERE jsonb_typeof(frames) = 'object'
UNION ALL
SELECT port.id, NULL, sides FROM port
JOIN inventory_observedcircuit circuit ON circuit.router_id = port.router_id
    AND port.interface IN (sides #>> '{near,attachment,port}', sides #>> '{far,attachment,port}')
ORDER BY 1, 2, 3
"""


def vlan_lease(
    *,
    port: Port,
    owner: UUID | None,
    side: str,
    tags: Tags,
    now: datetime,
    foreign: Mapping[str, Frames],
    own: UUID | None = None,
    preferred: Collection[int] = (),
    besides: Iterable[Keys] = (),
) -> int | None:
    """Lease these tags for ``owner``, and return the outer VLAN, or None for a whole port.

    Raises VlanTaken, VlanInForeignUse, NoVlanFree. ``owner`` None checks the lease and writes nothing; keys
    ``besides`` then count as leased, too.

    ``tags.outer`` None on a tagged service means any free VLAN, preferably one of ``preferred``. ``own``: the
    owner of the line's present leases. If its lease of this end overlaps the new tags, the lease is widened
    to include the old and the new tags. Later, ``vlans_settle`` narrows it to the old or to the new tags.
    ``foreign``: the port's ``foreign_frames``.

    The caller has locked the port's row, which makes "any" deterministic. The constraint alone guarantees
    uniqueness and needs no lock.
    """
    portal_chooses = tags.tagging is not Tagging.UNTAGGED and tags.outer is None
    taken: list[Keys] = []
    if portal_chooses or owner is None:
        taken = [*vlans_taken(port, side=side, own=own), *besides]
    if portal_chooses:
        free = free_outer_vlans(taken, foreign.values(), tags)
        if not free:
            raise NoVlanFree(field=f"{side}_end.outer_vlan", port=str(port))
        tags = replace(tags, outer=next((vlan for vlan in free if vlan in preferred), free[0]))
    keys = tag_keys(tags)
    if owner is None:
        leased = not any(overlap(keys, others) for others in taken)
    else:
        mine = PortVlanLease.objects.filter(port=port, owner=own, side=side).first() if own else None
        widen = mine is not None and overlap(_keys(mine), keys)
        leased = _widen(mine, keys) if mine and widen else _insert(port, owner, side, keys, now)
    if not leased:
        raise _taken(port, side, tags, keys)
    if not portal_chooses:
        _refuse_foreign(port, side, tags, foreign)
    return tags.outer


def vlans_taken(port: Port, *, side: str = "", own: UUID | None = None) -> list[Keys]:
    """Return the leased key ranges of a port, except those that ``own`` has for ``side``."""
    leases = PortVlanLease.objects.filter(port=port)
    if own is not None:
        leases = leases.exclude(owner=own, side=side)
    return [(keys.lower, keys.upper) for keys in leases.values_list("keys", flat=True)]


def foreign_frames(ports: Iterable[Port]) -> dict[int, dict[str, Frames]]:
    """Return the frames that foreign interfaces take, by port id and interface name, as routers report them.

    Agents of earlier releases report no frames of sub-interfaces. For these agents, only cross-connected
    interfaces with an outer VLAN are known. Runs one SQL statement, or none without ports.
    """
    by_id = {port.pk: port for port in ports}
    if not by_id:
        return {}
    parameters = {
        "ports": list(by_id),
        "routers": [port.router_id for port in by_id.values()],
        "interfaces": [port.interface for port in by_id.values()],
    }
    rows = [(pk, name, json.loads(facts)) for pk, name, facts in rows_of(_FOREIGN, parameters)]
    found: dict[int, dict[str, Frames]] = {pk: {} for pk in by_id}
    for pk, name, frames in rows:
        if name is not None:
            found[pk][name] = Frames(**frames)
    for pk, name, sides in rows:
        for side in (sides["near"], sides["far"]) if name is None else ():
            attachment = side["attachment"] if side else None
            if attachment and attachment["port"] == by_id[pk].interface and attachment["outer"]:
                found[pk].setdefault(side["interface"], _attached_frames(attachment))
    return found


def _attached_frames(attachment: Mapping[str, Any]) -> Frames:
    """Return the frames of an attachment circuit that has an outer VLAN.

    A wide attachment circuit takes every inner VLAN.
    """
    single = attachment["tags"] == 1
    return Frames(
        dot1ad=attachment["dot1ad"],
        outer=attachment["outer"],
        inner=None if single or attachment["wide"] else attachment["inner"],
        least_tags=attachment["tags"],
        most_tags=1 if single and attachment["exact"] else MANY_TAGS,
    )


def free_outer_vlans(taken: Iterable[Keys], foreign: Iterable[Frames], tags: Tags) -> list[int]:
    """Return the outer VLANs that an end with the other values of ``tags`` could still have.

    VLANs from 100 come first, then 2 to 99, then 1, because switches often use low VLANs for themselves.
    """
    blocked = set()
    for others in taken:
        if others == WHOLE_PORT:
            return []
        # A lease of less than the whole port has exactly one outer VLAN.
        outer = (others[0] >> 12) & 0xFFF
        if overlap(tag_keys(replace(tags, outer=outer)), others):
            blocked.add(outer)
    wanted = replace(tags, outer=None).frames
    for frames in foreign:
        if wanted.overlaps(frames):
            if frames.outer is None:
                return []
            blocked.add(frames.outer)
    return [outer for outer in _OFFERED if outer not in blocked]


def vlans_settle(
    *,
    owner: UUID,
    spare: UUID,
    wanted: Mapping[str, tuple[int, Keys]],
    leftover: Mapping[str, UUID],
) -> None:
    """Make ``owner`` have exactly ``wanted``, from the leases of ``owner`` and ``spare``.

    ``wanted``: side -> (port id, keys). Other leases are released. If ``leftover`` names an owner for a side,
    that owner gets the other leases of this side.
    """
    leases = list(PortVlanLease.objects.filter(owner__in=(owner, spare)).order_by("pk"))
    kept: list[PortVlanLease] = []
    for lease in leases:
        port, keys = wanted[lease.side]
        low, high = _keys(lease)
        if lease.port_id == port and low <= keys[0] and keys[1] <= high:
            kept.append(lease)
        elif lease.side in leftover:
            PortVlanLease.objects.filter(pk=lease.pk).update(owner=leftover[lease.side])
        else:
            lease.delete()
    # Update last, so that no side ever has two leases of one owner.
    for lease in kept:
        keys = wanted[lease.side][1]
        PortVlanLease.objects.filter(pk=lease.pk).update(owner=owner, keys=NumericRange(*keys))


def vlans_release(*, owner: UUID, kept_at: Collection[tuple[str, int]] = ()) -> None:
    """Release an owner's VLANs immediately, except at ``kept_at`` (side, router id).

    VLANs need no cool-down.
    """
    for lease in PortVlanLease.objects.filter(owner=owner).select_related("port"):
        if (lease.side, lease.port.router_id) not in kept_at:
            lease.delete()


def _refuse_foreign(port: Port, side: str, tags: Tags, foreign: Mapping[str, Frames]) -> None:
    """Raise VlanInForeignUse if the agent would refuse these frames because of a reported interface."""
    wanted = tags.frames
    for interface, frames in foreign.items():
        if wanted.overlaps(frames):
            field, vlans = _named(side, tags)
            raise VlanInForeignUse(field=field, port=str(port), vlans=vlans, interface=interface)


def _named(side: str, tags: Tags) -> tuple[str, str | None]:
    """Return the name of the wrong field for an error, and the requested VLANs as text. For a whole port, the
    text is None.
    """
    if tags.tagging is Tagging.UNTAGGED:
        return f"{side}_end.port", None
    return f"{side}_end.outer_vlan", ".".join(str(vlan) for vlan in (tags.outer, tags.inner) if vlan)


def _insert(port: Port, owner: UUID, side: str, keys: Keys, now: datetime) -> bool:
    low, high = keys
    values = {"port": port.pk, "owner": owner, "side": side, "low": low, "high": high, "now": now}
    return bool(execute(_LEASE, values))


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


def _taken(port: Port, side: str, tags: Tags, keys: Keys) -> VlanTaken:
    field, vlans = _named(side, tags)
    leases = list(PortVlanLease.objects.filter(port=port))
    return VlanTaken(
        field=field,
        port=str(port),
        vlans=vlans,
        whole_port_taken=any(_keys(lease) == WHOLE_PORT for lease in leases),
        owners=tuple(lease.owner for lease in leases if overlap(_keys(lease), keys)),
    )
