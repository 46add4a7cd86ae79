"""The chosen transport, and the alternatives that a refusal names."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.network.encapsulations import AUTO_TUNNELS, TUNNELS, Family, Transport
from portal.core.network.required_mtu import MtuPolicy, SvcMtuOutOfRange
from portal.underlay.errors import (
    Capacity,
    FamilyMissing,
    LocalAcrossRouters,
    NoPath,
    PathMtuUnknown,
    PathTooNarrow,
    TransportRefused,
    TunnelWithinRouter,
)
from portal.underlay.path_mtu import PathPolicy
from portal.underlay.topology import Link, LinkSide, Router, Topology
from portal.underlay.transport_selection import Between, SelectedTransport, options, select_transport

BOTH = frozenset(Family)
V4 = frozenset({Family.V4})
V6 = frozenset({Family.V6})


def link(name: str, mtu: int | None, *, families: frozenset[Family] = BOTH, metric: int = 10) -> Link:
    sides = [LinkSide(router=r, interface=name, metric=metric, declared_ip_mtu=mtu) for r in "az"]
    return Link(id=name, name=name, a=sides[0], z=sides[1], families=families)


def pair(*links: Link) -> Topology:
    return Topology(routers=[Router(id=name, name=name) for name in "az"], links=links)


def select(topology: Topology, **changed: Any) -> SelectedTransport:
    """Select a transport for 1500 bytes with two tags from a to z by ``auto``, unless changed."""
    wanted: dict[str, Any] = {
        "a": "a",
        "z": "z",
        "a_families": BOTH,
        "z_families": BOTH,
        "carried_tags": 2,
        "policy": PathPolicy(),
    }
    svc_mtu, requested = changed.pop("svc_mtu", 1500), changed.pop("requested", None)
    between = Between(topology=topology, **wanted | changed)
    return select_transport(between, svc_mtu=svc_mtu, requested=requested)


def test_auto_takes_the_cheapest_tunnel_that_fits() -> None:
    selected = select(pair(link("bb", 9000)))
    assert (selected.transport, selected.frame, selected.required) == (Transport.VXLAN4, 1522, 1558)
    assert selected.path is not None
    assert selected.path.path_mtu == 9000


def test_auto_takes_l2xc_on_one_router_without_reading_the_underlay() -> None:
    selected = select(pair(), z="a", a_families=(), z_families=())
    assert selected == SelectedTransport(transport=Transport.L2XC, frame=1522)


@pytest.mark.parametrize(
    ("families", "v4_mtu", "v6_mtu", "chosen"),
    [
        (BOTH, 1558, 9000, Transport.VXLAN4),
        (BOTH, 1557, 9000, Transport.VXLAN6),
        (BOTH, None, 9000, Transport.VXLAN6),
        (V6, 9000, 1578, Transport.VXLAN6),
    ],
)
def test_auto_takes_the_other_family_if_the_first_does_not_fit(
    families: frozenset[Family], v4_mtu: int | None, v6_mtu: int, chosen: Transport
) -> None:
    underlay = pair(link("four", v4_mtu, families=V4), link("six", v6_mtu, families=V6))
    assert select(underlay, z_families=families).transport is chosen


def test_auto_takes_gre_last_and_refuses_with_the_largest_candidate() -> None:
    assert select(pair(link("bb", 1557))).transport is Transport.GRE4
    with pytest.raises(PathTooNarrow) as refused:
        select(pair(link("bb", 1557)), svc_mtu=1504)
    error = refused.value
    assert (error.link.name, error.required, error.available, error.shortfall) == ("bb", 1558, 1557, 1)
    assert (error.fits, error.requested) == ((), None)
    assert error.capacities == (
        Capacity(Transport.VXLAN4, 1499),
        Capacity(Transport.VXLAN6, 1479),
        Capacity(Transport.GENEVE4, 1483),
        Capacity(Transport.GENEVE6, 1463),
        Capacity(Transport.GRE4, 1503),
        Capacity(Transport.GRE6, 1483),
    )


# Checks of mtu.md: planning, 1500 bytes with two tags.
@pytest.mark.parametrize(
    ("transport", "required"),
    [
        ("gre4", 1554),
        ("gre6", 1574),
        ("vxlan4", 1558),
        ("vxlan6", 1578),
        ("geneve4", 1574),
        ("geneve6", 1594),
    ],
)
def test_a_requested_tunnel_is_served_up_to_the_byte(transport: str, required: int) -> None:
    for wide_enough in (required, required + 1):
        selected = select(pair(link("bb", wide_enough)), requested=Transport(transport))
        assert (selected.transport, selected.required) == (Transport(transport), required)
    with pytest.raises(PathTooNarrow) as refused:
        select(pair(link("bb", required - 1)), requested=Transport(transport))
    assert refused.value.shortfall == 1
    assert Transport(transport) not in refused.value.fits


def test_a_jumbo_underlay_carries_8942_with_two_tags_and_8950_with_none() -> None:
    underlay = pair(link("bb", 9000))
    assert select(underlay, svc_mtu=8942).transport is Transport.VXLAN4
    assert select(underlay, svc_mtu=8950, carried_tags=0).transport is Transport.VXLAN4
    for svc_mtu, tags in ((8943, 2), (8951, 0)):
        with pytest.raises(PathTooNarrow):
            select(underlay, svc_mtu=svc_mtu, carried_tags=tags, requested=Transport.VXLAN4)


def test_exact_has_no_reserve_and_ignores_failures() -> None:
    underlay = pair(link("bb", 1558), link("spare", 1500, metric=20))
    exact = PathPolicy(mtu=MtuPolicy.EXACT)
    assert select(underlay, policy=exact, requested=Transport.GENEVE4).required == 1558
    with pytest.raises(PathTooNarrow) as refused:
        select(underlay, policy=PathPolicy(mtu=MtuPolicy.EXACT, any_single_failure=True))
    assert refused.value.link.name == "spare"


def test_planning_considers_failures_by_default() -> None:
    underlay = pair(link("bb", 1558), link("spare", 1500, metric=20))
    with pytest.raises(PathTooNarrow) as refused:
        select(underlay)
    assert refused.value.link.name == "spare"
    assert select(underlay, policy=PathPolicy(any_single_failure=False)).transport is Transport.VXLAN4


@pytest.mark.parametrize(("gre_key", "required"), [(False, 1546), (True, 1550)])
def test_a_gre_key_counts_under_the_exact_policy(gre_key: bool, required: int) -> None:
    selected = select(
        pair(link("bb", 9000)),
        requested=Transport.GRE4,
        policy=PathPolicy(mtu=MtuPolicy.EXACT),
        gre_keys=V4 if gre_key else V6,
    )
    assert (selected.required, selected.gre_key) == (required, gre_key)


def test_a_key_costs_four_bytes_of_the_largest_packet_and_nothing_of_other_tunnels() -> None:
    def largest(gre_keys: frozenset[Family]) -> dict[str, int | None]:
        between = Between(
            topology=pair(link("bb", 9000)),
            a="a",
            z="z",
            a_families=BOTH,
            z_families=BOTH,
            carried_tags=0,
            policy=PathPolicy(mtu=MtuPolicy.EXACT),
            gre_keys=gre_keys,
        )
        found = options(between)
        return {option.transport.value: option.largest_svc_mtu for option in found}

    without, keyed = largest(frozenset()), largest(BOTH)
    # 8,972 and 8,952 bytes with the Ethernet header, measured on two VPP 25.10 by the agent's activationtest.
    assert (keyed["gre4"], keyed["gre6"]) == (8958, 8938)
    assert (without["gre4"], without["gre6"]) == (8962, 8942)
    assert {name for name in keyed if keyed[name] != without[name]} == {"gre4", "gre6"}


def test_an_unknown_mtu_names_its_links_and_what_the_other_family_carries() -> None:
    underlay = pair(link("four", None, families=V4), link("six", 9000, families=V6))
    with pytest.raises(PathMtuUnknown) as refused:
        select(underlay, requested=Transport.GENEVE4)
    assert [found.name for found in refused.value.links] == ["four"]
    assert refused.value.fits == (Transport.VXLAN6, Transport.GENEVE6, Transport.GRE6)


def test_an_end_without_the_family_is_named() -> None:
    with pytest.raises(FamilyMissing) as refused:
        select(pair(link("bb", 9000)), requested=Transport.VXLAN6, z_families=V4)
    assert refused.value.family is Family.V6
    assert [router.name for router in refused.value.routers] == ["z"]
    assert refused.value.fits == (Transport.VXLAN4, Transport.GENEVE4, Transport.GRE4)


def test_ends_that_share_no_family_are_refused() -> None:
    with pytest.raises(FamilyMissing) as refused:
        select(pair(link("bb", 9000)), a_families=V4, z_families=V6)
    assert refused.value.family is Family.V4
    assert [router.name for router in refused.value.routers] == ["z"]
    assert refused.value.fits == ()


def test_no_path_is_reported_only_when_no_family_has_one() -> None:
    with pytest.raises(NoPath):
        select(pair())
    with pytest.raises(PathTooNarrow) as refused:
        select(pair(link("six", 1500, families=V6)))
    assert (refused.value.required, refused.value.shortfall) == (1574, 74)


def test_l2xc_across_routers_is_refused_with_the_tunnels_that_fit() -> None:
    with pytest.raises(LocalAcrossRouters) as refused:
        select(pair(link("bb", 9000)), requested=Transport.L2XC)
    assert refused.value.field == "transport"
    assert (refused.value.a.name, refused.value.z.name) == ("a", "z")
    assert refused.value.fits == TUNNELS


@pytest.mark.parametrize("tunnel", TUNNELS)
def test_a_tunnel_within_one_router_is_refused(tunnel: Transport) -> None:
    with pytest.raises(TunnelWithinRouter) as refused:
        select(pair(link("bb", 9000)), z="a", requested=tunnel)
    assert (refused.value.router.name, refused.value.transport) == ("a", tunnel)
    assert refused.value.fits == (Transport.L2XC,)
    assert refused.value.sentence.startswith(f"Both ports are on a; {tunnel.value} joins two routers.")


def test_an_impossible_svc_mtu_is_refused_before_any_path_is_computed() -> None:
    with pytest.raises(SvcMtuOutOfRange):
        select(pair(), svc_mtu=67)


@given(
    mtu=st.integers(68, 9300),
    svc_mtu=st.integers(68, 9300),
    tags=st.integers(0, 2),
    policy=st.builds(PathPolicy, mtu=st.sampled_from(MtuPolicy)),
    gre_keys=st.frozensets(st.sampled_from(Family)),
    requested=st.sampled_from([None, *TUNNELS]),
)
def test_a_refusal_lists_the_transports_that_fit(
    mtu: int,
    svc_mtu: int,
    tags: int,
    policy: PathPolicy,
    gre_keys: frozenset[Family],
    requested: Transport | None,
) -> None:
    underlay = pair(link("bb", mtu))

    def outcome(
        transport: Transport | None, size: int
    ) -> SelectedTransport | TransportRefused | SvcMtuOutOfRange:
        try:
            return select(
                underlay,
                svc_mtu=size,
                carried_tags=tags,
                policy=policy,
                requested=transport,
                gre_keys=gre_keys,
            )
        except (TransportRefused, SvcMtuOutOfRange) as refused:
            return refused

    def served(transport: Transport, size: int) -> bool:
        return isinstance(outcome(transport, size), SelectedTransport)

    selected = outcome(requested, svc_mtu)
    if isinstance(selected, TransportRefused):
        assert selected.fits == tuple(t for t in TUNNELS if served(t, svc_mtu))
        assert not set(selected.fits) & {*([requested] if requested else AUTO_TUNNELS)}
        for capacity in selected.capacities:
            assert served(capacity.transport, capacity.largest_svc_mtu)
            assert not served(capacity.transport, capacity.largest_svc_mtu + 1)
        incapable = set(TUNNELS) - {capacity.transport for capacity in selected.capacities}
        assert not any(served(transport, 68) for transport in incapable)
    else:
        assert isinstance(selected, SelectedTransport)
        assert selected.required is not None
        assert selected.required <= mtu
        assert served(selected.transport, svc_mtu)
