"""Leases of the identifiers of tunnels: VNIs, GRE keys, and address pairs for GRE tunnels without a key.

A lease of a VNI or a key inserts a random value. A unique constraint refuses a value that is not free. With
16.7 million VNIs and few leases, the first try nearly always succeeds, and clients need not wait for each
other's locks. If most VNIs are leased or reserved, the portal searches for gaps. The search begins at a
random value and ends after _SEEN values, which take about a second. It covers a pool of up to a million
values completely.

When a lease ends, the identifier cools down before it can be leased again.
"""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from portal.accounts.models import User
from portal.allocation.errors import (
    GreKeysExhausted,
    GrePairsExhausted,
    TunnelKeyTaken,
    TunnelPairTaken,
    VniPoolExhausted,
    VniRangeBackwards,
    VniRangeInUse,
)
from portal.allocation.models import LAST_GRE_KEY, GreKeyLease, GrePairLease, ReservedVniRange, VniLease
from portal.core.db.statements import delete_locked, execute, rows_of
from portal.core.errors import DomainError
from portal.core.network.encapsulations import Encapsulation
from portal.events.announcements import announce
from portal.inventory.models import ObservedCircuit, ObservedRoute, Router, TunnelAddress

FIRST_VNI, LAST_VNI = 1, 2**24 - 1
# Reserved for the portal's own probes between routers; never leased to a line. One VNI serves all probes,
# because each pair of routers has its own tunnel.
PROBE_VNI = LAST_VNI
_RANDOM_TRIES = 8
_GAP_ROUNDS = 8
_GAPS_A_ROUND = 256
# The number of values that a search for gaps reads per piece, and in total.
_PIECE, _SEEN = 2**14, 2**20

_LEASE_VNI = """
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
_KEY_TRIES = 64

_LEASE_KEY = """
INSERT INTO allocation_grekeylease (gre_key, holder, leased_at)
SELECT %(key)s, %(owner)s, %(now)s
WHERE %(of_others)s OR NOT EXISTS (
    SELECT 1 FROM inventory_observedcircuit WHERE key = %(key)s AND encapsulation = 'gre'
)
ON CONFLICT (gre_key) DO NOTHING
"""
# The database orders the pair, because the constraint uses the order of its inet type.
_LEASE_PAIR = """
INSERT INTO allocation_grepairlease (low, high, holder, leased_at) VALUES (
    least(%(a)s::inet, %(z)s::inet), greatest(%(a)s::inet, %(z)s::inet), %(owner)s, %(now)s
) ON CONFLICT (low, high) DO NOTHING
"""


def vni_lease(*, owner: UUID, now: datetime) -> int:
    """Lease a free VNI for ``owner`` in bounded time, however full the pool is. Raises ``VniPoolExhausted``.

    A VNI of a foreign line is not leased, because that line may be adopted later.
    """
    for vni in _candidates():
        if _inserted(_LEASE_VNI, vni=vni, owner=owner, now=now, probe=PROBE_VNI, of_others=False):
            return vni
    raise VniPoolExhausted


def vni_lease_named(vni: int, *, owner: UUID, now: datetime) -> None:
    """Lease this VNI for ``owner``, even during its cool-down. Raises ``TunnelKeyTaken``."""
    if not _inserted(_LEASE_VNI, vni=vni, owner=owner, now=now, probe=PROBE_VNI, of_others=True):
        _cooling_down_take(VniLease.objects.filter(vni=vni), TunnelKeyTaken(key=vni), owner=owner, now=now)


def vni_available() -> bool:
    """Return whether the search for gaps finds a VNI that is neither reserved, leased nor in cool-down."""
    return bool(_gaps(1))


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
    return rows_of(_GAPS, {**parameters, "start": start, "count": count})


def _inserted(statement: str, **values: object) -> bool:
    """Insert a lease; return whether it was free. ``of_others``: foreign lines may use the value already."""
    return bool(execute(statement, values))


def gre_key_lease(*, owner: UUID, now: datetime) -> int:
    """Lease a free key for ``owner`` that no foreign line uses. Raises ``GreKeysExhausted``."""
    for _ in range(_KEY_TRIES):
        key = random.randint(1, LAST_GRE_KEY)  # noqa: S311 - not a secret
        if _inserted(_LEASE_KEY, key=key, owner=owner, now=now, of_others=False):
            return key
    raise GreKeysExhausted


def gre_key_lease_named(key: int, *, owner: UUID, now: datetime) -> None:
    """Lease this key for ``owner``, even during its cool-down. Raises ``TunnelKeyTaken``."""
    if not _inserted(_LEASE_KEY, key=key, owner=owner, now=now, of_others=True):
        in_cooldown = GreKeyLease.objects.filter(gre_key=key)
        _cooling_down_take(in_cooldown, TunnelKeyTaken(key=key), owner=owner, now=now)


def gre_pair_lease(
    *, a_router: Router, z_router: Router, family: int, owner: UUID | None, now: datetime
) -> tuple[str, str]:
    """Lease a pair of tunnel addresses; return (A address, Z address). Raises ``GrePairsExhausted``.

    Candidates are addresses that the router's agent reports and that the far end has a route to. Pairs with a
    foreign tunnel without a key are excluded. ``owner`` None checks the lease and writes nothing.
    """
    for pair in _offered(a_router, z_router, family):
        if owner is None:
            free = not GrePairLease.objects.filter(is_pair(pair)).exists()
        else:
            free = _inserted(_LEASE_PAIR, a=pair[0], z=pair[1], owner=owner, now=now)
        if free:
            return pair
    raise GrePairsExhausted(a_router=a_router.name, z_router=z_router.name, family=family)


def gre_pair_lease_named(pair: tuple[str, str], *, owner: UUID, now: datetime) -> None:
    """Lease this pair for ``owner``, even during its cool-down. Raises ``TunnelPairTaken``."""
    if not _inserted(_LEASE_PAIR, a=pair[0], z=pair[1], owner=owner, now=now):
        in_cooldown = GrePairLease.objects.filter(is_pair(pair))
        _cooling_down_take(in_cooldown, TunnelPairTaken(pair=" – ".join(pair)), owner=owner, now=now)


def is_pair(addresses: tuple[str, str]) -> Q:
    """Return the filter for leases of these two addresses, in either order."""
    return Q(low__in=addresses, high__in=addresses)


def _offered(a_router: Router, z_router: Router, family: int) -> Iterator[tuple[str, str]]:
    of_others = ObservedCircuit.objects.filter(
        router__in=(a_router, z_router), encapsulation=Encapsulation.GRE, key=0
    )
    taken = {frozenset(pair) for pair in of_others.values_list("local", "remote")}
    pairs = product(
        usable_gre_addresses(a_router, far=z_router, family=family),
        usable_gre_addresses(z_router, far=a_router, family=family),
    )
    return (pair for pair in pairs if frozenset(pair) not in taken)


def usable_gre_addresses(router: Router, *, far: Router, family: int) -> list[str]:
    """Return the addresses of ``router`` that ``far`` reaches, the loopback first, the others sorted."""
    routed = ObservedRoute.objects.filter(router=far, reachable=True).values("address")
    addresses = TunnelAddress.objects.filter(
        router=router, table=router.underlay_table, address__in=routed
    ).values_list("address", flat=True)
    of_family = [a for a in addresses if (":" in a) == (family == 6)]
    return sorted(of_family, key=lambda a: (a != router.loopback(family), a))


def leases_end(leases: QuerySet[Any], *, kept: QuerySet[Any], rest: timedelta, now: datetime) -> None:
    """End ``leases``. Leases among ``kept`` are quarantined. The cool-down of the other leases begins now."""
    active = leases.filter(released_at__isnull=True)
    active.filter(pk__in=kept.values("pk")).update(released_at=now, free_at=None)
    active.update(released_at=now, free_at=now + rest)


def lease_settle(
    leases: QuerySet[Any],
    wanted: Q | None,
    *,
    owner: UUID,
    spare: UUID,
    kept: QuerySet[Any],
    rest: timedelta,
    now: datetime,
) -> None:
    """Make ``owner`` have exactly the lease ``wanted``, from the leases of ``owner`` and ``spare``.

    Any other lease of the two owners begins its cool-down, or its quarantine if it is among ``kept``.
    """
    active = leases.filter(owner__in=(owner, spare), released_at__isnull=True)
    leases_end(active if wanted is None else active.exclude(wanted), kept=kept, rest=rest, now=now)
    if wanted is not None:
        active.filter(wanted).update(owner=owner)


def cooldown_begin(leases: QuerySet[Any], *, rest: timedelta, now: datetime) -> None:
    """End the quarantine of the quarantined ``leases``; their cool-down begins now."""
    leases.filter(released_at__isnull=False, free_at__isnull=True).update(free_at=now + rest)


@transaction.atomic
def cooled_down_leases_free(*, now: datetime) -> int:
    """Free the VNIs, keys and pairs whose cool-down is over; return their number.

    A lease that an adoption takes out of its cool-down at this moment is kept.
    """
    over = Q(released_at__isnull=False, free_at__lte=now)
    kinds = (VniLease, GreKeyLease, GrePairLease)
    return sum(delete_locked(kind.objects.filter(over), skip_locked=True) for kind in kinds)


def _cooling_down_take(leases: QuerySet[Any], refusal: DomainError, *, owner: UUID, now: datetime) -> None:
    """Give ``owner`` the lease among ``leases`` that is in cool-down. Raises ``refusal`` if there is none.

    A lease in quarantine is not taken. Use it only for a found line, which uses the number on routers.
    """
    cooling_down = leases.filter(released_at__isnull=False, free_at__isnull=False)
    if not cooling_down.update(owner=owner, leased_at=now, released_at=None, free_at=None):
        raise refusal


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
    execute("LOCK TABLE allocation_vnilease IN SHARE MODE")
    leased = VniLease.objects.filter(vni__range=(first, last))
    if (count := leased.count()) > 0:
        example = leased.order_by("vni").values_list("vni", flat=True)[0]
        raise VniRangeInUse(first=first, last=last, count=count, example=example)
