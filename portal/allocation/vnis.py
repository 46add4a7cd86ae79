"""Leasing VNIs: insert a random candidate, and let the unique key say whether it was free.

With 16.7 million values and few leases the first try nearly always wins, and no lock orders the
clients. Only in a nearly full pool are the gaps looked up.
"""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection

from portal.allocation.errors import VniPoolExhausted
from portal.allocation.models import ReservedVniRange, VniLease

FIRST_VNI, LAST_VNI = 1, 2**24 - 1
_RANDOM_TRIES = 16
_GAP_ROUNDS = 8
_GAPS_A_ROUND = 256


def vni_lease(*, holder: UUID, now: datetime) -> int:
    """Lease a free VNI for ``holder``, or raise ``VniPoolExhausted``."""
    allowed = allowed_ranges()
    for vni in _candidates(allowed):
        if _insert(vni, holder, now):
            return vni
    raise VniPoolExhausted


def allowed_ranges() -> list[tuple[int, int]]:
    """The VNIs that are not reserved, as inclusive ranges in ascending order."""
    allowed, next_free = [], FIRST_VNI
    for first, last in ReservedVniRange.objects.order_by("first").values_list("first", "last"):
        if first > next_free:
            allowed.append((next_free, first - 1))
        next_free = max(next_free, last + 1)
    if next_free <= LAST_VNI:
        allowed.append((next_free, LAST_VNI))
    return allowed


def vni_release(*, holder: UUID, rest: timedelta | None, now: datetime) -> None:
    """Begin the rest of a VLL's VNI. ``rest`` None means until somebody says so: the VNI is quarantined."""
    VniLease.objects.filter(holder=holder, released_at__isnull=True).update(
        released_at=now, free_at=None if rest is None else now + rest
    )


def rested_vnis_free(*, now: datetime) -> int:
    """Return the VNIs whose rest is over to the pool; how many."""
    return VniLease.objects.filter(released_at__isnull=False, free_at__lte=now).delete()[0]


def _candidates(allowed: list[tuple[int, int]]) -> Iterator[int]:
    if not allowed:
        return
    weights = [last - first + 1 for first, last in allowed]
    for _ in range(_RANDOM_TRIES):
        yield random.randint(*random.choices(allowed, weights)[0])  # noqa: S311 - not a secret
    for _ in range(_GAP_ROUNDS):
        gaps = _gaps(allowed)
        if not gaps:
            return
        random.shuffle(gaps)
        yield from gaps


def _gaps(allowed: list[tuple[int, int]]) -> list[int]:
    """Some VNIs that no row holds; committed rows of others count, uncommitted ones do not."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT vni FROM unnest(%s::int[], %s::int[]) AS r(first, last), generate_series(first, last) AS vni"
            " WHERE NOT EXISTS (SELECT 1 FROM allocation_vnilease l WHERE l.vni = vni.vni) LIMIT %s",
            [[first for first, _ in allowed], [last for _, last in allowed], _GAPS_A_ROUND],
        )
        return [row[0] for row in cursor.fetchall()]


def _insert(vni: int, holder: UUID, now: datetime) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO allocation_vnilease (vni, holder, leased_at) VALUES (%s, %s, %s)"
            " ON CONFLICT (vni) DO NOTHING",
            [vni, holder, now],
        )
        return bool(cursor.rowcount)
