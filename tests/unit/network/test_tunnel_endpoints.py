"""The capabilities of a line's two routers, as reported or, without a report, as declared."""

from dataclasses import replace

import pytest

from portal.core.network.encapsulations import Encapsulation, Family, Transport
from portal.underlay.errors import (
    EncapsulationMissing,
    EndpointMissing,
    EndpointUnrouted,
    PathTooNarrow,
    TransportRefused,
    TunnelWithinRouter,
)
from portal.underlay.path_mtu import PathPolicy
from portal.underlay.topology import Router
from portal.underlay.transport_selection import (
    Assumption,
    Between,
    LineEnd,
    assumptions,
    barred,
    options,
    select_transport,
)
from tests.unit.network.test_transport_selection import BOTH, link, pair

ALL = frozenset(Encapsulation)
RHINO = LineEnd(
    router=Router(id="a", name="a"),
    loopbacks={Family.V4: "10.255.0.1", Family.V6: "fd00::1"},
    encapsulations=ALL,
    addresses=frozenset({"10.255.0.1", "fd00::1"}),
    routes={"10.255.0.2": True, "fd00::2": True},
)
HIPPO = LineEnd(
    router=Router(id="z", name="z"),
    loopbacks={Family.V4: "10.255.0.2", Family.V6: "fd00::2"},
    encapsulations=ALL,
    addresses=frozenset({"10.255.0.2", "fd00::2"}),
    routes={"10.255.0.1": True, "fd00::1": True},
)
SILENT = LineEnd(router=RHINO.router, loopbacks=RHINO.loopbacks)


def choose(
    a: LineEnd, z: LineEnd, requested: Transport | None = None, *, mtu: int = 9000, svc_mtu: int = 1500
):
    return select_transport(between(a, z, mtu=mtu), svc_mtu=svc_mtu, requested=requested)


def between(a: LineEnd, z: LineEnd, *, mtu: int = 9000) -> Between:
    return Between(
        topology=pair(link("bb", mtu)),
        a=a.router.id,
        z=z.router.id,
        a_families=BOTH,
        z_families=BOTH,
        carried_tags=0,
        policy=PathPolicy(),
        barred=barred(a, z, Transport),
    )


def test_fully_capable_ends_exclude_and_assume_nothing() -> None:
    assert barred(RHINO, HIPPO, Transport) == {}
    assert [assumptions(RHINO, HIPPO, each) for each in Transport] == [[]] * len(Transport)
    assert choose(RHINO, HIPPO).transport is Transport.VXLAN4


@pytest.mark.parametrize("lacking", ["a", "z"])
def test_auto_does_not_offer_what_either_vpp_cannot_do(lacking: str) -> None:
    ends = {"a": RHINO, "z": HIPPO}
    ends[lacking] = replace(ends[lacking], encapsulations=ALL - {Encapsulation.VXLAN})
    assert choose(ends["a"], ends["z"]).transport is Transport.GENEVE4
    with pytest.raises(EncapsulationMissing) as refusal:
        choose(ends["a"], ends["z"], Transport.VXLAN4)
    assert (refusal.value.router.name, refusal.value.transport) == (lacking, Transport.VXLAN4)
    assert refusal.value.fits == (Transport.GENEVE4, Transport.GENEVE6, Transport.GRE4, Transport.GRE6)
    assert all("vxlan" not in capacity.transport for capacity in refusal.value.capacities)


def test_all_obstacles_to_a_transport_are_reported() -> None:
    a, z = (replace(end, encapsulations=frozenset({Encapsulation.L2XC})) for end in (RHINO, HIPPO))
    z = replace(z, addresses=frozenset())
    with pytest.raises(PathTooNarrow) as refusal:
        choose(a, z, Transport.VXLAN4, mtu=1549)
    assert [type(each) for each in refusal.value.also] == [
        EncapsulationMissing,
        EncapsulationMissing,
        EndpointMissing,
    ]
    assert refusal.value.fits == ()


def test_a_narrow_path_is_reported_before_a_missing_plugin() -> None:
    z = replace(HIPPO, encapsulations=ALL - {Encapsulation.VXLAN})
    with pytest.raises(PathTooNarrow):
        choose(RHINO, z, mtu=1500)


def test_without_any_transport_the_refusal_is_about_the_cheapest() -> None:
    z = replace(HIPPO, encapsulations=frozenset({Encapsulation.L2XC}))
    with pytest.raises(EncapsulationMissing) as refusal:
        choose(RHINO, z)
    assert refusal.value.transport is Transport.VXLAN4


def test_a_loopback_that_is_not_on_the_router_is_no_endpoint() -> None:
    z = replace(HIPPO, addresses=frozenset({"fd00::2"}))
    assert choose(RHINO, z).transport is Transport.VXLAN6
    with pytest.raises(EndpointMissing) as refusal:
        choose(RHINO, z, Transport.GENEVE4)
    assert (refusal.value.router.name, refusal.value.address) == ("z", "10.255.0.2")


def test_a_loopback_without_a_route_from_the_far_end_is_no_endpoint() -> None:
    z = replace(HIPPO, routes={"10.255.0.1": False, "fd00::1": True})
    assert choose(RHINO, z).transport is Transport.VXLAN6
    with pytest.raises(EndpointUnrouted) as refusal:
        choose(RHINO, z, Transport.VXLAN4)
    assert (refusal.value.router.name, refusal.value.address, refusal.value.far.name) == (
        "a",
        "10.255.0.1",
        "z",
    )


def test_gre_without_a_key_chooses_its_addresses() -> None:
    z = replace(HIPPO, addresses=frozenset(), routes={"10.255.0.1": False})
    assert choose(RHINO, z, Transport.GRE4).transport is Transport.GRE4
    assert assumptions(SILENT, HIPPO, Transport.GRE4) == [Assumption(SILENT.router, "encapsulation", "gre")]


def test_gre_with_a_key_ends_on_the_loopbacks_like_all_others() -> None:
    z = replace(HIPPO, addresses=frozenset({"fd00::2"}))
    assert [type(each) for each in barred(RHINO, z, Transport, gre_keys=BOTH)[Transport.GRE4]] == [
        EndpointMissing
    ]
    assert Transport.GRE4 not in barred(RHINO, z, Transport, gre_keys={Family.V6})
    assert Transport.GRE6 not in barred(RHINO, z, Transport, gre_keys=BOTH)
    assert len(assumptions(SILENT, HIPPO, Transport.GRE4, gre_keys=BOTH)) == 3


def test_a_router_without_a_report_counts_as_declared_and_assumed() -> None:
    assert choose(SILENT, HIPPO).transport is Transport.VXLAN4
    a = SILENT.router
    assert assumptions(SILENT, HIPPO, Transport.VXLAN4) == [
        Assumption(a, "encapsulation", "vxlan"),
        Assumption(a, "address", "10.255.0.1"),
        Assumption(a, "route", "10.255.0.2"),
    ]
    assert assumptions(SILENT, SILENT, Transport.L2XC) == [Assumption(a, "encapsulation", "l2xc")]


def test_a_local_cross_connect_needs_its_plugin_too() -> None:
    a = replace(RHINO, encapsulations=frozenset())
    with pytest.raises(EncapsulationMissing):
        choose(a, a)
    with pytest.raises(TunnelWithinRouter) as refusal:
        choose(a, a, Transport.VXLAN4)
    assert refusal.value.fits == ()


@pytest.mark.parametrize("svc_mtu", [1500, 8950, 8951])
def test_an_excluded_option_has_a_reason_and_no_packet_size(svc_mtu: int) -> None:
    z = replace(HIPPO, encapsulations=ALL - {Encapsulation.VXLAN})
    offered = options(between(RHINO, z))
    for option in offered:
        if option.transport in (Transport.VXLAN4, Transport.VXLAN6):
            assert (option.largest_svc_mtu, len(option.barred)) == (None, 1)
            continue
        fits = option.largest_svc_mtu is not None and svc_mtu <= option.largest_svc_mtu
        try:
            choose(RHINO, z, option.transport, svc_mtu=svc_mtu)
        except TransportRefused:
            assert not fits
        else:
            assert fits
