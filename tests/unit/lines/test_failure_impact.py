"""The effect of a failed link or router on paths, compared with a walk over every path."""

from collections.abc import Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.network.encapsulations import Family
from portal.underlay.path_mtu import Pair, PathLeft, crossing, path_left
from portal.underlay.topology import Link, LinkSide, Router, Topology
from portal.vll.failure_impact import Fate, fate_of
from tests.unit.network.path_reference import shortest

V4 = Family.V4
ROUTERS = "abcde"
PAIRS = [Pair(a, z, V4) for a in ROUTERS for z in ROUTERS if a < z]


def topology(*links: Link) -> Topology:
    return Topology(routers=[Router(id=name, name=name) for name in ROUTERS], links=links)


def link(
    name: str, a: str, z: str, *, there: int = 10, back: int = 10, mtu: int | None = 9000, up: bool = True
) -> Link:
    return Link(
        id=name,
        name=name,
        a=LinkSide(router=a, interface=f"{name}-a", metric=there, declared_ip_mtu=mtu),
        z=LinkSide(router=z, interface=f"{name}-z", metric=back, declared_ip_mtu=mtu),
        in_service=up,
    )


@st.composite
def networks(draw: st.DrawFn) -> list[Link]:
    """Draw up to seven links between five routers.

    Some are parallel, asymmetric, narrow or out of service.
    """
    ends = st.tuples(st.sampled_from(ROUTERS), st.sampled_from(ROUTERS)).filter(
        lambda both: both[0] != both[1]
    )
    return [
        link(
            f"l{number}",
            *draw(ends),
            there=draw(st.integers(1, 3)),
            back=draw(st.integers(1, 3)),
            mtu=draw(st.sampled_from([1500, 9000, None])),
            up=draw(st.integers(0, 5)) > 0,
        )
        for number in range(draw(st.integers(1, 7)))
    ]


def walked(links: list[Link], pair: Pair) -> tuple[set[Hashable], set[Hashable]]:
    """Return links and routers on a shortest path of either direction; empty unless both have a path."""
    usable = [each for each in links if each.in_service]
    there, back = shortest(usable, pair.a, pair.z), shortest(usable, pair.z, pair.a)
    if not there or not back:
        return set(), set()
    steps = [step for path in there + back for step in path]
    return {step[3].id for step in steps}, {router for step in steps for router in step[:2]}


@given(networks(), st.data())
def test_the_effect_of_a_failed_link_agrees_with_the_reference(
    links: list[Link], data: st.DataObject
) -> None:
    net, failed = topology(*links), data.draw(st.sampled_from(links))
    left = [each for each in links if each.id != failed.id]
    hit = crossing(net, PAIRS, link=failed.id)
    assert hit == [pair for pair in PAIRS if failed.id in walked(links, pair)[0]]
    for pair in hit:
        assert {each.id for each in path_left(net, pair, link=failed.id).links} == walked(left, pair)[0]


@given(networks(), st.sampled_from(ROUTERS))
def test_the_effect_of_a_failed_router_agrees_with_the_reference(links: list[Link], failed: str) -> None:
    net = topology(*links)
    left = [each for each in links if failed not in (each.a.router, each.z.router)]
    hit = crossing(net, PAIRS, router=failed)
    assert hit == [pair for pair in PAIRS if failed in walked(links, pair)[1]]
    for pair in hit:
        assert {each.id for each in path_left(net, pair, router=failed).links} == walked(left, pair)[0]


@given(networks(), st.data())
def test_the_remaining_mtu_is_that_of_the_narrowest_link_on_any_path(
    links: list[Link], data: st.DataObject
) -> None:
    net, failed = topology(*links), data.draw(st.sampled_from(links))
    for pair in crossing(net, PAIRS, link=failed.id):
        found = path_left(net, pair, link=failed.id)
        mtus = [net.ip_mtu(each) for each in found.links]
        expected = None if None in mtus else min((mtu for mtu in mtus if mtu is not None), default=None)
        assert found.ip_mtu == expected


def test_a_link_of_the_other_family_fails_unnoticed() -> None:
    only6 = Link(
        id="six",
        name="six",
        a=LinkSide(router="a", interface="x", metric=1),
        z=LinkSide(router="b", interface="y", metric=1),
        families=frozenset({Family.V6}),
    )
    net = topology(only6, link("four", "a", "b"))
    assert crossing(net, [Pair("a", "b", V4)], link="six") == []
    assert crossing(net, [Pair("a", "b", Family.V6)], link="six") == [Pair("a", "b", Family.V6)]
    assert path_left(net, Pair("a", "b", Family.V6), link="six").is_cut is False


PATH_LEFT = (link("left", "a", "b"),)


@pytest.mark.parametrize(
    ("left", "fate"),
    [
        (PathLeft((), None), Fate.DOWN),
        (PathLeft(PATH_LEFT, None), Fate.NOT_KNOWN),
        (PathLeft(PATH_LEFT, 1549), Fate.TOO_WIDE),
        (PathLeft(PATH_LEFT, 1550), Fate.DEGRADED),
    ],
)
def test_the_remaining_path_decides_the_fate_of_a_line(left: PathLeft, fate: Fate) -> None:
    assert fate_of(needed=1550, left=left) is fate
