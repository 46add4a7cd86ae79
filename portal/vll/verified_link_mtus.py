"""Measured MTUs of links: the largest size that passed on any path over the link."""

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from portal.core.network.encapsulations import Family
from portal.underlay.topology import Topology
from portal.vll.booked_link_loads import MAX_PAIRS
from portal.vll.models import TunnelPath

# A measurement that was not repeated for this many rounds of probes is outdated.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class VerifiedMtu:
    """The verified size of an IP packet, in bytes, and the time of the measurement."""

    ip_mtu: int
    at: datetime


def verified_link_mtus(*, topology: Topology, now: datetime) -> dict[Hashable, VerifiedMtu]:
    """Return the measured MTUs by link id, without links that have no recent measurement.

    A path with several equal routes verifies none of its links, because the frames took only one of the
    routes.
    """
    since = now - timedelta(seconds=_ROUNDS * settings.LONGLINE_PROBE_EVERY_S)
    paths = TunnelPath.objects.filter(in_use=True, verified_at__gte=since).order_by("verified_ip_mtu", "pk")
    found: dict[Hashable, VerifiedMtu] = {}
    for path in paths[:MAX_PAIRS]:
        used = topology.used_links(
            path.a_router_id, path.z_router_id, family=Family(path.family), any_single_failure=False
        )
        routers = {side.router for link in used.primary for side in (link.a, link.z)}
        if len(used.primary) != len(routers) - 1:
            continue
        for link in used.primary:
            # Paths are sorted by this size, so the largest one is stored last.
            found[link.id] = VerifiedMtu(path.verified_ip_mtu or 0, path.verified_at or now)
    return found
