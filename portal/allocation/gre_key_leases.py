"""Leases of GRE keys (RFC 2890): insert a random key. A unique constraint refuses a key that is not free.

With 4,294,967,295 values the first try nearly always succeeds. A search for gaps is not needed.
"""

import random
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from portal.allocation.errors import GreKeysExhausted, TunnelKeyTaken
from portal.allocation.models import LAST_GRE_KEY, GreKeyLease
from portal.allocation.tunnel_lease_cooldown import cooling_down_take, leases_end

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
        if _insert(key, owner, now, of_others=False):
            return key
    raise GreKeysExhausted


def gre_key_lease_named(key: int, *, owner: UUID, now: datetime) -> None:
    """Lease this key for ``owner``, even during its cool-down. Raises ``TunnelKeyTaken``."""
    in_cooldown = GreKeyLease.objects.filter(gre_key=key)
    if not _insert(key, owner, now, of_others=True) and not cooling_down_take(
        in_cooldown, owner=owner, now=now
    ):
        raise TunnelKeyTaken(key=key)


def gre_key_release(*, owner: UUID, kept: QuerySet[GreKeyLease], rest: timedelta, now: datetime) -> None:
    """End the lease of an owner's key. The lease cools down, or is quarantined if it is among ``kept``."""
    leases_end(GreKeyLease.objects.filter(owner=owner), kept=kept, rest=rest, now=now)


def cooled_down_gre_keys_free(*, now: datetime) -> int:
    """Free the keys whose cool-down is over; return their number."""
    return GreKeyLease.objects.filter(released_at__isnull=False, free_at__lte=now).delete()[0]


def _insert(key: int, owner: UUID, now: datetime, *, of_others: bool) -> bool:
    """Insert a lease. ``of_others``: whether a foreign line may use the key already."""
    parameters: dict[str, Any] = {"key": key, "owner": owner, "now": now, "of_others": of_others}
    with connection.cursor() as cursor:
        cursor.execute(_LEASE, parameters)
        return bool(cursor.rowcount)
