"""The end of a lease of a VNI, a GRE key or an address pair: it rests before anybody gets it again."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import models
from django.db.models import QuerySet


def leases_end(leases: QuerySet[Any], *, kept: QuerySet[Any], rest: timedelta, now: datetime) -> None:
    """End ``leases``; their cool-down begins now. Those among ``kept`` are quarantined before it."""
    held = leases.filter(released_at__isnull=True)
    held.filter(pk__in=kept.values("pk")).update(released_at=now, free_at=None)
    held.update(released_at=now, free_at=now + rest)


def lease_settle(
    of: type[models.Model],
    column: str,
    *,
    holder: UUID,
    spare: UUID,
    wanted: int | None,
    kept: QuerySet[Any],
    rest: timedelta,
    now: datetime,
) -> None:
    """Make ``holder`` hold the number ``wanted`` and nothing else, out of what it and ``spare`` hold now.

    Another one begins its rest, or its quarantine if it is among ``kept``.
    """
    held = of._default_manager.filter(holder__in=(holder, spare), released_at__isnull=True)
    others = held if wanted is None else held.exclude(**{column: wanted})
    leases_end(others, kept=kept, rest=rest, now=now)
    if wanted is not None:
        held.filter(**{column: wanted}).update(holder=holder)


def cooldown_begin(leases: QuerySet[Any], *, rest: timedelta, now: datetime) -> None:
    """End the quarantine of those of ``leases`` that are in it; their cool-down begins now."""
    leases.filter(released_at__isnull=False, free_at__isnull=True).update(free_at=now + rest)


def resting_take(leases: QuerySet[Any], *, holder: UUID, now: datetime) -> bool:
    """Lease the one of ``leases`` that rests, and is not in quarantine, to ``holder``; whether there is one.

    For a found line: what has the number on the routers is that line.
    """
    resting = leases.filter(released_at__isnull=False, free_at__isnull=False)
    return bool(resting.update(holder=holder, leased_at=now, released_at=None, free_at=None))
