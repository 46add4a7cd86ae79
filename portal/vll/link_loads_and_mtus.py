"""Facts about links from the lines on them: booked load, and sizes that tests have verified."""

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, F, QuerySet, Sum

from portal.core.network.encapsulations import Family
from portal.underlay.current_topology import current_topology
from portal.underlay.topology import Topology
from portal.vll.lines_not_carried import tunnelled_lines
from portal.vll.models import TunnelPath, Vll

# Finding one path takes up to 1 ms in a network of 1,000 routers. With more than MAX_PAIRS paths, link_loads
# returns None, because incomplete sums would mislead.
MAX_PAIRS = 500


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """The booked load of a link: the number of lines and the sum of their CIRs in bit/s.

    If a line has several equal paths, its whole CIR counts on each link of these paths.
    """

    lines: int
    cir_bps: int


def link_loads(*, now: datetime) -> dict[Hashable, LinkLoad] | None:
    """Return the loads by link id, without links that carry no line.

    Return None if there are more than MAX_PAIRS combinations of A router, Z router and family.
    """
    pairs = list(_pairs()[: MAX_PAIRS + 1])
    if len(pairs) > MAX_PAIRS:
        return None
    topology = current_topology(now=now)
    lines: dict[Hashable, int] = defaultdict(int)
    cir_bps: dict[Hashable, int] = defaultdict(int)
    for a, z, family, count, cir in pairs:
        used = topology.used_links(a, z, family=Family(family), any_single_failure=False)
        for link in used.primary:
            lines[link.id] += count
            cir_bps[link.id] += cir
    return {link: LinkLoad(lines[link], cir_bps[link]) for link in lines}


def _pairs() -> QuerySet[Vll, tuple[int, int, int, int, int]]:
    """Return rows of (A router, Z router, family, lines, bit/s) for all tunnels that routers must have."""
    by_routers = tunnelled_lines().values(a=F("a_router"), z=F("z_router"), by=F("family"))
    summed = by_routers.annotate(lines=Count("pk"), cir=Sum("cir_bps")).order_by("a", "z", "by")
    found: QuerySet[Vll, tuple[int, int, int, int, int]] = summed.values_list("a", "z", "by", "lines", "cir")
    return found


# A measurement that was not repeated for this many rounds of probes is outdated.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class VerifiedMtu:
    """The verified size of an IP packet, in bytes, and the time of the measurement."""

    ip_mtu: int
    at: datetime


def verified_link_mtus(*, topology: Topology, now: datetime) -> dict[Hashable, VerifiedMtu]:
    """Return the measured MTUs by link id, without links that have no recent measurement.

    A path with several equal routes verifies none of its links: the frames took only one of the routes.
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
