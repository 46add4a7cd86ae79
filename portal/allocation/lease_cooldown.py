"""The end of a lease of a VNI, a GRE key or an address pair: it rests before anybody gets it again."""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet


def leases_end(leases: QuerySet[Any], *, kept: QuerySet[Any], rest: timedelta, now: datetime) -> None:
    """End ``leases``; their cool-down begins now. Those among ``kept`` are quarantined before it."""
    held = leases.filter(released_at__isnull=True)
    held.filter(pk__in=kept.values("pk")).update(released_at=now, free_at=None)
    held.update(released_at=now, free_at=now + rest)


def cooldown_begin(leases: QuerySet[Any], *, rest: timedelta, now: datetime) -> None:
    """End the quarantine of those of ``leases`` that are in it; their cool-down begins now."""
    leases.filter(released_at__isnull=False, free_at__isnull=True).update(free_at=now + rest)
