"""The end of a lease of a VNI, GRE key or address pair. The identifier cools down before it can be leased
again.
"""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import models
from django.db.models import QuerySet


def leases_end(leases: QuerySet[Any], *, kept: QuerySet[Any], rest: timedelta, now: datetime) -> None:
    """End ``leases``. Leases among ``kept`` are quarantined. The cool-down of the other leases begins now."""
    active = leases.filter(released_at__isnull=True)
    active.filter(pk__in=kept.values("pk")).update(released_at=now, free_at=None)
    active.update(released_at=now, free_at=now + rest)


def lease_settle(
    of: type[models.Model],
    column: str,
    *,
    owner: UUID,
    spare: UUID,
    wanted: int | None,
    kept: QuerySet[Any],
    rest: timedelta,
    now: datetime,
) -> None:
    """Make ``owner`` have exactly the number ``wanted``, from the leases of ``owner`` and ``spare``.

    ``column``: the column of the number. Any other number of the two owners begins its cool-down, or its
    quarantine if it is among ``kept``.
    """
    active = of._default_manager.filter(owner__in=(owner, spare), released_at__isnull=True)
    others = active if wanted is None else active.exclude(**{column: wanted})
    leases_end(others, kept=kept, rest=rest, now=now)
    if wanted is not None:
        active.filter(**{column: wanted}).update(owner=owner)


def cooldown_begin(leases: QuerySet[Any], *, rest: timedelta, now: datetime) -> None:
    """End the quarantine of the quarantined ``leases``; their cool-down begins now."""
    leases.filter(released_at__isnull=False, free_at__isnull=True).update(free_at=now + rest)


def cooling_down_take(leases: QuerySet[Any], *, owner: UUID, now: datetime) -> bool:
    """Give ``owner`` the lease among ``leases`` that is in cool-down; return whether there was one.

    A lease in quarantine is not taken. Use this only for a found line, which already uses the number on the
    routers.
    """
    cooling_down = leases.filter(released_at__isnull=False, free_at__isnull=False)
    return bool(cooling_down.update(owner=owner, leased_at=now, released_at=None, free_at=None))
