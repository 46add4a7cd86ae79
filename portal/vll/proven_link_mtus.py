"""The MTU of links as frames have proven it: of every path that goes over a link, the largest that passed."""

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from portal.core.encapsulations import Family
from portal.underlay.topology import Topology
from portal.vll.booked_link_loads import MAX_PAIRS
from portal.vll.models import TunnelPath

# What was not seen again for so many rounds of probes proves nothing of today.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Proven:
    """At least so many bytes of an IP packet, and when that was seen."""

    ip_mtu: int
    at: datetime


def proven_link_mtus(*, topology: Topology, now: datetime) -> dict[Hashable, Proven]:
    """By the link's id; links on which nothing was proven lately are left out.

    A path of several equal ways proves nothing of any link: the frames took one of them.
    """
    since = now - timedelta(seconds=_ROUNDS * settings.LONGLINE_PROBE_EVERY_S)
    paths = TunnelPath.objects.filter(in_use=True, proven_at__gte=since).order_by("proven_ip_mtu", "pk")
    found: dict[Hashable, Proven] = {}
    for path in paths[:MAX_PAIRS]:
        used = topology.used_links(
            path.a_router_id, path.z_router_id, family=Family(path.family), any_single_failure=False
        )
        routers = {side.router for link in used.primary for side in (link.a, link.z)}
        if len(used.primary) != len(routers) - 1:
            continue
        for link in used.primary:
            # The larger one comes later.
            found[link.id] = Proven(path.proven_ip_mtu or 0, path.proven_at or now)
    return found
