"""The time of the MTU check of an order, with 1,000 routers and 2,500 links. Any single link may fail.

A figure is the median, over several rounds, of the 95th percentile over random pairs of routers:

* ``mtu_check_p95_ms``: the check with an existing topology. Hardly any pair occurs twice, so the check
  profits only from results that the topology caches for all pairs.
* ``mtu_check_cold_p95_ms``: the first check after a metric of the topology has changed. It includes the time
  to build the topology.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from statistics import median, quantiles
from time import perf_counter

from bench.figures import Figure
from bench.sizes import sized
from portal.core.network.encapsulations import Family
from portal.underlay.errors import TransportRefused
from portal.underlay.path_mtu import PathPolicy
from portal.underlay.topology import Link, LinkSide, Router, Topology
from portal.underlay.transport_selection import Between, select_transport

ROUTERS = sized(1_000, smallest=40)
LINKS = sized(2_500, smallest=100)
ROUNDS = sized(5, smallest=1)
WARM_CHECKS = sized(400, smallest=20)
COLD_CHECKS = sized(60, smallest=5)


def facts(chance: random.Random) -> tuple[list[Router], list[Link]]:
    """Return a connected underlay. Most links carry 9000 bytes; some links are too narrow, so that checks can
    fail.
    """
    routers = [Router(id=number, name=f"r{number}") for number in range(ROUTERS)]
    ends = [(number, chance.randrange(number)) for number in range(1, ROUTERS)]
    while len(ends) < LINKS:
        a, z = chance.sample(range(ROUTERS), 2)
        ends.append((a, z))
    return routers, [link(number, a, z, chance) for number, (a, z) in enumerate(ends)]


def link(number: int, a: int, z: int, chance: random.Random) -> Link:
    mtu = 1500 if chance.random() < 0.02 else 9000
    metric = chance.choice((10, 10, 20, 50))
    sides = [
        LinkSide(router=router, interface=f"e{number}", metric=metric, declared_ip_mtu=mtu)
        for router in (a, z)
    ]
    return Link(id=number, name=f"l{number}", a=sides[0], z=sides[1])


def check(topology: Topology, chance: random.Random) -> bool:
    """Check a line between two random routers. Return whether a transport is possible."""
    a, z = chance.sample(range(ROUTERS), 2)
    try:
        between = Between(
            topology=topology,
            a=a,
            z=z,
            a_families=Family,
            z_families=Family,
            carried_tags=2,
            policy=PathPolicy(),
        )
        select_transport(between, svc_mtu=1500, requested=None)
    except TransportRefused:
        return False  # a refusal is a valid result too
    return True


def p95(times: list[float]) -> float:
    return quantiles(times, n=20)[-1] * 1_000


def warm_round(chance: random.Random) -> float:
    routers, links = facts(chance)
    topology = Topology(routers=routers, links=links)
    check(topology, chance)
    times, fitted = [], 0
    for _ in range(WARM_CHECKS):
        began = perf_counter()
        fitted += check(topology, chance)
        times.append(perf_counter() - began)
    assert fitted >= WARM_CHECKS / 2, f"a transport fits for only {fitted} of {WARM_CHECKS} pairs"
    return p95(times)


def cold_round(chance: random.Random) -> float:
    routers, links = facts(chance)
    times = []
    for number in range(COLD_CHECKS):
        side = links[number].a
        links[number] = replace(links[number], a=replace(side, metric=side.metric + 1))
        began = perf_counter()
        check(Topology(routers=routers, links=links), chance)
        times.append(perf_counter() - began)
    return p95(times)


def measure() -> Iterator[Figure]:
    chance = random.Random(2)
    note = f"{ROUTERS} routers, {LINKS} links, any single failure"
    yield Figure("mtu_check_p95_ms", median(warm_round(chance) for _ in range(ROUNDS)), "ms", note)
    yield Figure("mtu_check_cold_p95_ms", median(cold_round(chance) for _ in range(ROUNDS)), "ms", note)
