"""Leases of VNIs: insert a random VNI. A unique constraint refuses a VNI that is not free.

With 16.7 million values and few leases, the first try nearly always succeeds, and clients need not wait for
each other's locks. If most values are leased or reserved, the portal searches for gaps. The search begins at
a random value and ends after _SEEN values, which take about a second. It covers a pool of up to a million
values completely.
"""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet

from portal.accounts.models import User
from portal.allocation.errors import TunnelKeyTaken, VniPoolExhausted, VniRangeBackwards, VniRangeInUse
from portal.allocation.models import ReservedVniRange, VniLease
from portal.allocation.tunnel_lease_cooldown import cooling_down_take, leases_end
from portal.events.outbox import announce

FIRST_VNI, LAST_VNI = 1, 2**24 - 1
# Reserved for the portal's own probes between routers; never leased to a line. One VNI serves all probes,
# because each pair of routers has its own tunnel.
PROBE_VNI = LAST_VNI
_RANDOM_TRIES = 8
_GAP_ROUNDS = 8
_GAPS_A_ROUND = 256
# The number of values that a search for gaps reads per piece, and in total.
_PIECE, _SEEN = 2**14, 2**20

_LEASE = """
INSERT INTO allocation_vnilease (vni, holder, leased_at)
SELECT %(vni)s, %(owner)s, %(now)s
WHERE %(vni)s <> %(probe)s
AND NOT EXISTS (SELECT 1 FROM allocation_reservedvnirange WHERE %(vni)s BETWEEN first AND last)
AND (%(of_others)s OR NOT EXISTS (
    SELECT 1 FROM inventory_observedcircuit WHERE key = %(vni)s AND encapsulation IN ('vxlan', 'geneve')
))
ON CONFLICT (vni) DO NOTHING
"""
# The query cuts the ranges between reserved ranges (islands and gaps) into pieces. It reads the pieces in
# order, from the start value on, until the limit is reached. In each piece it finds the gaps between
# neighbours in the index.
_GAPS = """
WITH reserved AS (
    SELECT first, last FROM allocation_reservedvnirange
    UNION ALL VALUES (%(first)s - 1, %(first)s - 1), (%(probe)s, %(probe)s), (%(last)s + 1, %(last)s + 1)
), covered AS (
    SELECT max(last) OVER (ORDER BY first, last) AS until, lead(first) OVER (ORDER BY first, last) AS next
    FROM reserved
), pieces AS (
    SELECT low, least(low + %(piece)s, next) - 1 AS high
    FROM covered, generate_series(until + 1, next - 1, %(piece)s) AS low
), in_turn AS (
    SELECT low, high, sum(high - low + 1) OVER (ORDER BY high < %(start)s, low) AS values FROM pieces
)
SELECT gaps.low, gaps.high FROM (
    -- To count is several times as quick as to compare neighbours.
    SELECT low, high FROM in_turn WHERE values < %(piece)s + %(seen)s
    AND (SELECT count(*) FROM allocation_vnilease WHERE vni BETWEEN low AND high) < high - low + 1
) AS open, LATERAL (
    SELECT vni + 1, next - 1 FROM (
        SELECT vni, lead(vni) OVER (ORDER BY vni) FROM (
            SELECT vni FROM allocation_vnilease WHERE vni BETWEEN open.low AND open.high
            UNION ALL VALUES (open.low - 1), (open.high + 1)
        ) AS taken
    ) AS neighbours (vni, next) WHERE next > vni + 1
) AS gaps (low, high)
LIMIT %(count)s
"""


def vni_lease(*, owner: UUID, now: datetime) -> int:
    """Lease a free VNI for ``owner`` in bounded time, however full the pool is. Raises ``VniPoolExhausted``.

    A VNI of a foreign line is not leased, because that line may be adopted later.
    """
    for vni in _candidates():
        if _insert(vni, owner, now, of_others=False):
            return vni
    raise VniPoolExhausted


def vni_lease_named(vni: int, *, owner: UUID, now: datetime) -> None:
    """Lease this VNI for ``owner``, even during its cool-down. Raises ``TunnelKeyTaken``."""
    in_cooldown = VniLease.objects.filter(vni=vni)
    if not _insert(vni, owner, now, of_others=True) and not cooling_down_take(
        in_cooldown, owner=owner, now=now
    ):
        raise TunnelKeyTaken(key=vni)


def vni_available() -> bool:
    """Return whether the search for gaps finds a VNI that is neither reserved, leased nor in cool-down."""
    return bool(_gaps(1))


def vni_release(*, owner: UUID, kept: QuerySet[VniLease], rest: timedelta, now: datetime) -> None:
    """End the lease of an owner's VNI. The lease cools down, or is quarantined if it is among ``kept``."""
    leases_end(VniLease.objects.filter(owner=owner), kept=kept, rest=rest, now=now)


def cooled_down_vnis_free(*, now: datetime) -> int:
    """Free the VNIs whose cool-down is over; return their number."""
    return VniLease.objects.filter(released_at__isnull=False, free_at__lte=now).delete()[0]


def _candidates() -> Iterator[int]:
    for _ in range(_RANDOM_TRIES):
        yield random.randint(FIRST_VNI, LAST_VNI)  # noqa: S311 - not a secret
    for _ in range(_GAP_ROUNDS):
        gaps = _gaps(_GAPS_A_ROUND)
        if not gaps:
            return
        random.shuffle(gaps)
        for low, high in gaps:
            yield random.randint(low, high)  # noqa: S311 - not a secret


def _gaps(count: int) -> list[tuple[int, int]]:
    """Return (first, last) of some ranges of VNIs that are neither reserved nor in a committed lease.

    ``count``: the largest number of ranges.
    """
    parameters = {"first": FIRST_VNI, "last": LAST_VNI, "probe": PROBE_VNI, "piece": _PIECE, "seen": _SEEN}
    start = random.randint(FIRST_VNI, LAST_VNI)  # noqa: S311 - not a secret
    with connection.cursor() as cursor:
        cursor.execute(_GAPS, {**parameters, "start": start, "count": count})
        gaps: list[tuple[int, int]] = cursor.fetchall()
    return gaps


def _insert(vni: int, owner: UUID, now: datetime, *, of_others: bool) -> bool:
    """Insert a lease. ``of_others``: whether a foreign line may use the VNI already."""
    parameters: dict[str, Any] = {
        "vni": vni,
        "owner": owner,
        "now": now,
        "probe": PROBE_VNI,
        "of_others": of_others,
    }
    with connection.cursor() as cursor:
        cursor.execute(_LEASE, parameters)
        return bool(cursor.rowcount)


@transaction.atomic
def vni_range_create(*, first: int, last: int, reason: str, user: User, now: datetime) -> ReservedVniRange:
    """Reserve ``first`` to ``last``, both included. Raises VniRangeBackwards, VniRangeInUse."""
    _check(first, last)
    row = ReservedVniRange.objects.create(first=first, last=last, reason=reason)
    announce("vni_range.created", now=now, actor=user.username, data={"id": row.pk, "name": str(row)})
    return row


@transaction.atomic
def vni_range_change(
    *, vni_range: ReservedVniRange, user: User, now: datetime, **changes: int | str
) -> ReservedVniRange:
    """Change ``first``, ``last`` or ``reason`` of a range. Raises the errors of ``vni_range_create``."""
    row = ReservedVniRange.objects.select_for_update().get(pk=vni_range.pk)
    before = str(row)
    for name in ("first", "last", "reason"):
        setattr(row, name, changes.get(name, getattr(row, name)))
    # The text of a row contains all three fields.
    if str(row) == before:
        return row
    _check(row.first, row.last)
    row.save()
    data = {"id": row.pk, "name": str(row), "before": before}
    announce("vni_range.changed", now=now, actor=user.username, data=data)
    return row


@transaction.atomic
def vni_range_remove(*, vni_range: ReservedVniRange, user: User, now: datetime) -> None:
    """End the reservation of a range. Lines can then lease its VNIs."""
    data = {"id": vni_range.pk, "name": str(vni_range)}
    vni_range.delete()
    announce("vni_range.removed", now=now, actor=user.username, data=data)


def _check(first: int, last: int) -> None:
    if not FIRST_VNI <= first <= last <= LAST_VNI:
        raise VniRangeBackwards(first=first, last=last, minimum=FIRST_VNI, maximum=LAST_VNI)
    # Concurrent leases wait until this transaction ends, and then read the range.
    with connection.cursor() as cursor:
        cursor.execute("LOCK TABLE allocation_vnilease IN SHARE MODE")
    leased = VniLease.objects.filter(vni__range=(first, last))
    if (count := leased.count()) > 0:
        example = leased.order_by("vni").values_list("vni", flat=True)[0]
        raise VniRangeInUse(first=first, last=last, count=count, example=example)
