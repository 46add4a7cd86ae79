"""The links that count: equal-cost paths in both directions, and detours after any single failure."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.network.encapsulations import Family
from portal.underlay.shortest_paths import Graph
from portal.underlay.topology import InvalidTopology, Link, LinkSide, Router, Topology, UsedLinks
from tests.unit.network.path_reference import expected


def link(
    ends: str, metric: int = 10, *, back: int | None = None, name: str = "", mtu: int | None = 9000
) -> Link:
    """Return a link. ``ends`` "ab" joins routers a and b.

    ``back`` is the metric from b to a if it differs.
    """
    a, z = ends[0], ends[1]
    return Link(
        id=name or ends,
        name=name or ends,
        a=LinkSide(router=a, interface=f"to-{z}", metric=metric, declared_ip_mtu=mtu),
        z=LinkSide(router=z, interface=f"to-{a}", metric=metric if back is None else back),
    )


def topology(*links: Link) -> Topology:
    names = sorted({str(side.router) for link in links for side in (link.a, link.z)})
    return Topology(routers=[Router(id=name, name=name) for name in names], links=links)


def used(topology: Topology, ends: str, *, any_single_failure: bool = False) -> UsedLinks:
    return topology.used_links(ends[0], ends[1], family=Family.V4, any_single_failure=any_single_failure)


def names(items: Sequence[Link] | Sequence[Router]) -> list[str]:
    return [item.name for item in items]


def test_all_equal_cost_paths_count_in_order_of_their_distance() -> None:
    square = topology(link("az", 30), link("cz"), link("ab"), link("bz"), link("ac"))
    assert names(used(square, "az").primary) == ["ab", "ac", "bz", "cz"]


def test_a_dearer_path_counts_only_after_a_failure() -> None:
    triangle = topology(link("ab"), link("bz"), link("az"))
    assert names(used(triangle, "az").primary) == ["az"]
    assert used(triangle, "az").backup == ()
    assert names(used(triangle, "az", any_single_failure=True).backup) == ["ab", "bz"]


def test_parallel_links_are_two_links() -> None:
    pair = topology(link("az", name="one"), link("az", name="two"), link("az", 20, name="spare"))
    assert names(used(pair, "az").primary) == ["one", "two"]
    # Either may fail while the other remains: the spare never carries a frame.
    assert used(pair, "az", any_single_failure=True).backup == ()


def test_the_spare_of_a_single_link_counts() -> None:
    pair = topology(link("az", name="one"), link("az", 20, name="spare"))
    assert names(used(pair, "az", any_single_failure=True).backup) == ["spare"]


def test_a_different_return_path_counts() -> None:
    ring = topology(link("az", 10, back=100), link("ab"), link("bz"))
    assert names(used(ring, "az").primary) == ["az", "bz", "ab"]
    assert set(names(used(ring, "za").primary)) == {"az", "bz", "ab"}


def test_a_router_failure_can_use_links_that_no_link_failure_uses() -> None:
    # Each single link between a and z has a twin, so only the failure of b leads over c.
    net = topology(
        link("ab", name="ab1"),
        link("ab", name="ab2"),
        link("bz", name="bz1"),
        link("bz", name="bz2"),
        link("ac", 50),
        link("cz", 50),
    )
    result = used(net, "az", any_single_failure=True)
    assert names(result.backup) == ["ac", "cz"]
    assert result.fatal_routers == ()


def test_equal_cost_detours_all_count() -> None:
    net = topology(link("az"), link("ab", 20), link("bz", 20), link("ac", 20), link("cz", 20))
    assert names(used(net, "az", any_single_failure=True).backup) == ["ab", "bz", "ac", "cz"]


def test_a_cut_link_is_a_fact_and_no_error() -> None:
    chain = topology(link("ab"), link("bz"))
    result = used(chain, "az", any_single_failure=True)
    assert names(result.primary) == ["ab", "bz"]
    assert names(result.fatal_links) == ["ab", "bz"]
    assert names(result.fatal_routers) == ["b"]


def test_the_ends_themselves_do_not_fail() -> None:
    assert used(topology(link("az")), "az", any_single_failure=True).fatal_routers == ()


def test_links_of_the_other_family_or_out_of_service_carry_nothing() -> None:
    v6 = Link(id=1, name="v6", a=link("az").a, z=link("az").z, families=frozenset({Family.V6}))
    off = Link(id=2, name="off", a=link("az").a, z=link("az").z, in_service=False)
    net = topology(v6, off)
    assert used(net, "az") == UsedLinks()
    assert names(net.used_links("a", "z", family=Family.V6, any_single_failure=True).primary) == ["v6"]


def test_versions_that_differ_only_in_mtus_share_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    before = used(topology(link("ab"), link("bz"), link("az")), "az", any_single_failure=True)
    monkeypatch.setattr(Graph, "routes", None)
    narrow = topology(link("ab"), link("bz", mtu=1500), link("az"))
    after = used(narrow, "az", any_single_failure=True)
    assert (names(after.primary), names(after.backup)) == (names(before.primary), names(before.backup))
    assert [narrow.ip_mtu(each) for each in after.backup] == [9000, 1500]


@pytest.mark.parametrize(
    ("changed", "primary"),
    [
        (link("az", 21), ["ab", "bz"]),
        (link("az", 20), ["ab", "az", "bz"]),
        (link("az", 10, back=30), ["az", "ab", "bz"]),
        (replace(link("az"), in_service=False), ["ab", "bz"]),
        (replace(link("az"), families=frozenset({Family.V6})), ["ab", "bz"]),
        (link("ac"), ["ab", "ac", "bz", "cz"]),
    ],
    ids=["dearer", "as-dear", "back", "out-of-service", "other-family", "elsewhere"],
)
def test_a_change_that_moves_traffic_is_computed_again(changed: Link, primary: list[str]) -> None:
    rest = (link("ab"), link("bz"), link("cz"))
    assert names(used(topology(*rest, link("az")), "az").primary) == ["az"]
    assert sorted(names(used(topology(*rest, changed), "az").primary)) == sorted(primary)


def test_no_path_uses_no_links() -> None:
    assert used(topology(link("ab"), link("yz")), "az", any_single_failure=True) == UsedLinks()


@pytest.mark.parametrize(
    ("routers", "links"),
    [
        ("aa", []),
        ("az", [link("az"), link("az")]),
        ("a", [link("az")]),
        ("az", [link("az", 0)]),
        ("az", [link("az", 1, back=0)]),
    ],
    ids=["router twice", "link twice", "unknown router", "metric 0", "metric 0 on the way back"],
)
def test_contradictory_facts_are_refused(routers: str, links: list[Link]) -> None:
    with pytest.raises(InvalidTopology):
        Topology(routers=[Router(id=name, name=name) for name in routers], links=links)


def test_an_unknown_router_has_no_result() -> None:
    with pytest.raises(KeyError):
        used(topology(link("az")), "ax")


@pytest.mark.parametrize(
    ("declared", "observed", "ip_mtu"),
    [
        ((None, None), (None, None), None),
        ((9000, None), (None, None), 9000),
        ((9000, 1500), (None, None), 1500),
        ((9000, 9000), (None, 8999), 8999),
        ((None, None), (1500, 9000), 1500),
    ],
)
def test_a_link_is_as_wide_as_its_smallest_known_value(
    declared: tuple[int | None, int | None], observed: tuple[int | None, int | None], ip_mtu: int | None
) -> None:
    sides = [
        LinkSide(
            router=router, interface="e0", metric=1, declared_ip_mtu=declared[n], observed_ip_mtu=observed[n]
        )
        for n, router in enumerate("az")
    ]
    between = Link(id=1, name="l", a=sides[0], z=sides[1])
    assert topology(between).ip_mtu(between) == ip_mtu


@pytest.mark.parametrize(("agent_observed", "ip_mtu"), [(True, None), (False, 9000)])
@pytest.mark.parametrize("side", ["a", "z"])
@pytest.mark.parametrize("fact", ["observed_stale", "observed_missing"])
def test_a_side_missing_in_the_agents_report_has_an_unknown_mtu(
    agent_observed: bool, ip_mtu: int | None, side: str, fact: str
) -> None:
    sides = [
        LinkSide(router=r, interface="e0", metric=1, declared_ip_mtu=9000, **{fact: r == side}) for r in "az"
    ]
    between = Link(id=1, name="l", a=sides[0], z=sides[1])
    routers = [Router(id=r, name=r, agent_observed=agent_observed) for r in "az"]
    assert Topology(routers=routers, links=[between]).ip_mtu(between) == ip_mtu


@st.composite
def multigraphs(draw: st.DrawFn) -> list[Link]:
    """Draw up to six routers, "a" to "f", and ten links, some of them parallel."""
    routers = "abcdef"[: draw(st.integers(2, 6))]
    metrics = st.integers(1, 3)
    links = []
    for number in range(draw(st.integers(0, 10))):
        a, z = draw(st.permutations(routers))[:2]
        links.append(
            Link(
                id=number,
                name=str(number),
                a=LinkSide(router=a, interface=f"e{number}", metric=draw(metrics)),
                z=LinkSide(router=z, interface=f"e{number}", metric=draw(metrics)),
                families=frozenset(draw(st.sampled_from([(4, 6), (4,), (6,)]).map(lambda f: map(Family, f)))),
                in_service=draw(st.integers(0, 9)) > 0,
            )
        )
    return links


@given(multigraphs(), st.sampled_from(Family))
def test_the_fast_result_agrees_with_the_reference(links: list[Link], family: Family) -> None:
    routers = [Router(id=name, name=name) for name in "abcdef"]
    result = Topology(routers=routers, links=links).used_links(
        "a", "b", family=family, any_single_failure=True
    )
    obvious = expected(links, "a", "b", family)

    def ids(items: Sequence[Link] | Sequence[Router]) -> set[Hashable]:
        return {item.id for item in items}

    assert ids(result.primary) == obvious.primary
    assert ids(result.backup) == obvious.after_failures - obvious.primary
    assert ids(result.fatal_links) == obvious.fatal_links
    assert ids(result.fatal_routers) == obvious.fatal_routers


@given(multigraphs())
def test_without_failures_only_the_shortest_paths_count(links: list[Link]) -> None:
    routers = [Router(id=name, name=name) for name in "abcdef"]
    net = Topology(routers=routers, links=links)
    cautious = net.used_links("a", "b", family=Family.V4, any_single_failure=True)
    plain = net.used_links("a", "b", family=Family.V4, any_single_failure=False)
    assert plain == UsedLinks(primary=cautious.primary)


@given(multigraphs())
def test_both_ends_have_the_same_links(links: list[Link]) -> None:
    routers = [Router(id=name, name=name) for name in "abcdef"]
    net = Topology(routers=routers, links=links)
    there = net.used_links("a", "b", family=Family.V4, any_single_failure=True)
    back = net.used_links("b", "a", family=Family.V4, any_single_failure=True)
    assert set(there.primary) == set(back.primary)
    assert set(there.backup) == set(back.backup)
