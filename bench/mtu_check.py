"""The MTU check of an order on a large underlay: every shortest path, and any single failure."""

import random
import time
from collections.abc import Iterator
from itertools import pairwise

from bench.figures import Figure, percentile
from portal.core.transport import Family
from portal.underlay.links import Link, LinkSide, Router
from portal.underlay.path_mtu import path_check
from portal.underlay.topology import Topology

ROUTERS, LINKS = 1_000, 2_500
CHECKS = 300
SEED = 2026


def measure() -> Iterator[Figure]:
    draw = random.Random(SEED)
    topology = _underlay(draw)
    pairs = [tuple(draw.sample(range(ROUTERS), 2)) for _ in range(CHECKS)]

    def check_all() -> list[float]:
        times = []
        for a, z in pairs:
            started = time.perf_counter()
            path_check(topology, a, z, family=Family.V4, any_single_failure=True)
            times.append((time.perf_counter() - started) * 1000)
        return times

    size = f"{ROUTERS} routers, {LINKS} links, any single failure"
    yield Figure(
        "mtu_check_cold_p95_ms", percentile(check_all(), 95), "ms", f"{size}, pairs not asked before"
    )
    yield Figure("mtu_check_p95_ms", percentile(check_all(), 95), "ms", f"{size}, same underlay asked again")


def _underlay(draw: random.Random) -> Topology:
    """A ring, so that every router has two ways out, and random chords; few metrics, so many equal costs."""
    ends = {tuple(sorted(pair)) for pair in [*pairwise(range(ROUTERS)), (0, ROUTERS - 1)]}
    while len(ends) < LINKS:
        ends.add(tuple(sorted(draw.sample(range(ROUTERS), 2))))
    links = []
    for number, (a, z) in enumerate(sorted(ends)):
        metric = draw.choice([10, 20, 50, 100])
        a_side, z_side = (LinkSide(router, f"if{number}", metric, declared_ip_mtu=9000) for router in (a, z))
        links.append(Link(id=number, name=f"link {number}", a=a_side, z=z_side))
    return Topology(routers=[Router(id=n, name=f"r{n}") for n in range(ROUTERS)], links=links)
