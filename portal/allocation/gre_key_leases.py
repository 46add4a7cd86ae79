"""Leasing keys of GRE tunnels (RFC 2890): insert a random candidate; the unique key says if it was free.

Of 4,294,967,295 values the first try nearly always wins; no gaps have to be looked for.
"""

import random
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from portal.allocation.errors import GreKeysExhausted
from portal.allocation.lease_cooldown import leases_end
from portal.allocation.models import LAST_GRE_KEY, GreKeyLease

_TRIES = 64


def gre_key_lease(*, holder: UUID, now: datetime) -> int:
    """Lease a free key for ``holder``, or raise ``GreKeysExhausted``."""
    for _ in range(_TRIES):
        key = random.randint(1, LAST_GRE_KEY)  # noqa: S311 - not a secret
        if _insert(key, holder, now):
            return key
    raise GreKeysExhausted


def gre_key_settle(
    *,
    holder: UUID,
    spare: UUID,
    wanted: int | None,
    kept: QuerySet[GreKeyLease],
    rest: timedelta,
    now: datetime,
) -> None:
    """Make ``holder`` hold the key ``wanted`` and nothing else, out of what it and ``spare`` hold now.

    Another one begins its rest, or its quarantine if it is among ``kept``
    (``portal.allocation.lease_cooldown``).
    """
    held = GreKeyLease.objects.filter(holder__in=(holder, spare), released_at__isnull=True)
    others = held.exclude(gre_key=wanted) if wanted is not None else held
    leases_end(others, kept=kept, rest=rest, now=now)
    if wanted is not None:
        held.filter(gre_key=wanted).update(holder=holder)


def gre_key_release(*, holder: UUID, kept: QuerySet[GreKeyLease], rest: timedelta, now: datetime) -> None:
    """End the lease of a holder's key: it rests, or is quarantined if it is among ``kept``."""
    leases_end(GreKeyLease.objects.filter(holder=holder), kept=kept, rest=rest, now=now)


def rested_gre_keys_free(*, now: datetime) -> int:
    """Return the keys whose rest is over; how many."""
    return GreKeyLease.objects.filter(released_at__isnull=False, free_at__lte=now).delete()[0]


def _insert(key: int, holder: UUID, now: datetime) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO allocation_grekeylease (gre_key, holder, leased_at) VALUES (%s, %s, %s)"
            " ON CONFLICT (gre_key) DO NOTHING",
            [key, holder, now],
        )
        return bool(cursor.rowcount)
