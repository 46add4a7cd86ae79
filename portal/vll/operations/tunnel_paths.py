"""Keeping the list of paths that are watched: those that lines in service take."""

from datetime import datetime, timedelta

from django.db import transaction

from portal.vll.models import TunnelPath
from portal.vll.paths_in_use import PathKey, paths_in_use

# Packets are timed so often on each path.
ROUND_TRIPS_EVERY = timedelta(minutes=1)


@transaction.atomic
def tunnel_paths_keep(*, now: datetime) -> None:
    """Watch every path that a line in service takes, and no other."""
    used = paths_in_use()
    known = {_key(path): path for path in TunnelPath.objects.select_for_update().order_by("pk")}
    TunnelPath.objects.bulk_create(
        [
            TunnelPath(
                a_router_id=a, z_router_id=z, family=family, round_trips_due_at=_first_round_trips(a, now)
            )
            for a, z, family in sorted(used - known.keys())
        ],
        ignore_conflicts=True,
    )
    for in_use in (True, False):
        changed = [path.pk for key, path in known.items() if (key in used) is in_use is not path.in_use]
        if changed:
            TunnelPath.objects.filter(pk__in=changed).update(in_use=in_use)


def _key(path: TunnelPath) -> PathKey:
    return path.a_router_id, path.z_router_id, path.family


def _first_round_trips(router_id: int, now: datetime) -> datetime:
    """Spread over the interval by the router that is asked, which is then asked for all its paths at once."""
    return now.replace(second=0, microsecond=0) + ROUND_TRIPS_EVERY * (router_id * 7 % 60) / 60
