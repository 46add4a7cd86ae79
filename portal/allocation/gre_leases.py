"""Leases of GRE keys, and of address pairs for GRE tunnels without a key."""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from portal.allocation.errors import GreKeysExhausted, GrePairsExhausted, TunnelKeyTaken, TunnelPairTaken
from portal.allocation.models import LAST_GRE_KEY, GreKeyLease, GrePairLease
from portal.allocation.tunnel_lease_cooldown import cooling_down_take, leases_end
from portal.core.network.encapsulations import Encapsulation
from portal.inventory.models import ObservedCircuit, ObservedRoute, Router, TunnelAddress

_TRIES = 64

_LEASE = """
INSERT INTO allocation_grekeylease (gre_key, holder, leased_at)
SELECT %(key)s, %(owner)s, %(now)s
WHERE %(of_others)s OR NOT EXISTS (
    SELECT 1 FROM inventory_observedcircuit WHERE key = %(key)s AND encapsulation = 'gre'
)
ON CONFLICT (gre_key) DO NOTHING
"""


def gre_key_lease(*, owner: UUID, now: datetime) -> int:
    """Lease a free key for ``owner`` that no foreign line uses. Raises ``GreKeysExhausted``."""
    for _ in range(_TRIES):
        key = random.randint(1, LAST_GRE_KEY)  # noqa: S311 - not a secret
        if _insert_key(key, owner, now, of_others=False):
            return key
    raise GreKeysExhausted


def gre_key_lease_named(key: int, *, owner: UUID, now: datetime) -> None:
    """Lease this key for ``owner``, even during its cool-down. Raises ``TunnelKeyTaken``."""
    in_cooldown = GreKeyLease.objects.filter(gre_key=key)
    if not _insert_key(key, owner, now, of_others=True) and not cooling_down_take(
        in_cooldown, owner=owner, now=now
    ):
        raise TunnelKeyTaken(key=key)


def gre_key_release(*, owner: UUID, kept: QuerySet[GreKeyLease], rest: timedelta, now: datetime) -> None:
    """End the lease of an owner's key. The lease cools down, or is quarantined if it is among ``kept``."""
    leases_end(GreKeyLease.objects.filter(owner=owner), kept=kept, rest=rest, now=now)


def cooled_down_gre_keys_free(*, now: datetime) -> int:
    """Free the keys whose cool-down is over; return their number."""
    return GreKeyLease.objects.filter(released_at__isnull=False, free_at__lte=now).delete()[0]


def _insert_key(key: int, owner: UUID, now: datetime, *, of_others: bool) -> bool:
    """Insert a lease. ``of_others``: whether a foreign line may use the key already."""
    parameters: dict[str, Any] = {"key": key, "owner": owner, "now": now, "of_others": of_others}
    with connection.cursor() as cursor:
        cursor.execute(_LEASE, parameters)
        return bool(cursor.rowcount)


def gre_pair_lease(
    *, a_router: Router, z_router: Router, family: int, owner: UUID, now: datetime
) -> tuple[str, str]:
    """Lease a pair of tunnel addresses; return (A address, Z address). Raises ``GrePairsExhausted``.

    Candidates are addresses that the router's agent reports and that the far end has a route to. Pairs with a
    foreign tunnel without a key are excluded.
    """
    for a_address, z_address in _offered(a_router, z_router, family):
        if _insert_pair(a_address, z_address, owner, now):
            return a_address, z_address
    raise GrePairsExhausted(a_router=a_router.name, z_router=z_router.name, family=family)


def gre_pair_lease_named(pair: tuple[str, str], *, owner: UUID, now: datetime) -> None:
    """Lease this pair for ``owner``, even during its cool-down. Raises ``TunnelPairTaken``."""
    in_cooldown = GrePairLease.objects.filter(is_pair(pair))
    if not _insert_pair(*pair, owner, now) and not cooling_down_take(in_cooldown, owner=owner, now=now):
        raise TunnelPairTaken(pair=" – ".join(pair))


def gre_pair_check(*, a_router: Router, z_router: Router, family: int) -> None:
    """Raise ``GrePairsExhausted`` if a lease would fail. Writes nothing."""
    for pair in _offered(a_router, z_router, family):
        if not GrePairLease.objects.filter(low__in=pair, high__in=pair).exists():
            return
    raise GrePairsExhausted(a_router=a_router.name, z_router=z_router.name, family=family)


def gre_pair_settle(
    *,
    owner: UUID,
    spare: UUID,
    wanted: tuple[str, str] | None,
    kept: QuerySet[GrePairLease],
    rest: timedelta,
    now: datetime,
) -> None:
    """Make ``owner`` have exactly the pair ``wanted``, from the leases of ``owner`` and ``spare``.

    The order of the two addresses does not matter. Any other pair of the two owners begins its cool-down, or
    its quarantine if it is among ``kept`` (``portal.allocation.tunnel_lease_cooldown``).
    """
    active = GrePairLease.objects.filter(owner__in=(owner, spare), released_at__isnull=True)
    stays = is_pair(wanted) if wanted else Q(pk=None)
    leases_end(active.exclude(stays), kept=kept, rest=rest, now=now)
    active.filter(stays).update(owner=owner)


def gre_pair_release(*, owner: UUID, kept: QuerySet[GrePairLease], rest: timedelta, now: datetime) -> None:
    """End the lease of an owner's pair. The lease cools down, or is quarantined if it is among ``kept``."""
    leases_end(GrePairLease.objects.filter(owner=owner), kept=kept, rest=rest, now=now)


def is_pair(addresses: tuple[str, str]) -> Q:
    """Return the filter for leases of these two addresses, in either order."""
    return Q(low__in=addresses, high__in=addresses)


def cooled_down_gre_pairs_free(*, now: datetime) -> int:
    """Free the pairs whose cool-down is over; return their number."""
    return GrePairLease.objects.filter(released_at__isnull=False, free_at__lte=now).delete()[0]


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


def _insert_pair(a_address: str, z_address: str, owner: UUID, now: datetime) -> bool:
    # The database orders the pair, because the constraint uses the order of its inet type.
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO allocation_grepairlease (low, high, holder, leased_at)"
            " VALUES (least(%s::inet, %s::inet), greatest(%s::inet, %s::inet), %s, %s)"
            " ON CONFLICT (low, high) DO NOTHING",
            [a_address, z_address, a_address, z_address, owner, now],
        )
        return bool(cursor.rowcount)
