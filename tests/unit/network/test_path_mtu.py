"""The MTU of a path: its narrowest link, and links of unknown MTU."""

import pytest

from portal.core.network.encapsulations import Family
from portal.underlay.errors import NoPath, PathMtuUnknown, PathTooNarrow
from portal.underlay.path_mtu import PathReport, path_check
from portal.underlay.topology import Link, LinkSide, Router, Topology

MTU = int | None


def ring(*, az: MTU = 9000, ab: MTU = 9000, bz: MTU = 9000) -> Topology:
    """Return a topology in which a and z are neighbours, and the detour leads over b."""

    def link(ends: str, mtu: MTU) -> Link:
        sides = [LinkSide(router=r, interface=f"e-{ends}", metric=10, declared_ip_mtu=mtu) for r in ends]
        return Link(id=ends, name=ends, a=sides[0], z=sides[1])

    routers = [Router(id=name, name=name) for name in "abyz"]
    return Topology(routers=routers, links=[link("az", az), link("ab", ab), link("bz", bz)])


def check(topology: Topology, *, any_single_failure: bool = True, z: str = "z") -> PathReport:
    return path_check(topology, "a", z, family=Family.V4, any_single_failure=any_single_failure)


def test_the_narrowest_link_limits_the_path() -> None:
    report = check(ring(ab=1600, bz=1558))
    assert report.path_mtu == 1558
    assert report.limiting_link is not None
    assert report.limiting_link.name == "bz"
    assert [link.name for link in report.links] == ["az", "ab", "bz"]


def test_a_narrow_detour_does_not_count_when_failures_do_not() -> None:
    assert check(ring(ab=1500), any_single_failure=False).path_mtu == 9000
    assert check(ring(ab=1500), any_single_failure=True).path_mtu == 1500


@pytest.mark.parametrize("required", [1557, 1558])
def test_a_packet_that_fits_is_not_refused(required: int) -> None:
    assert check(ring(ab=1558)).refusal(required) is None


def test_one_byte_too_many_is_refused_with_link_mtu_and_shortfall() -> None:
    refusal = check(ring(ab=1558)).refusal(1559)
    assert isinstance(refusal, PathTooNarrow)
    assert refusal.link.name == "ab"
    assert (refusal.required, refusal.available, refusal.shortfall) == (1559, 1558, 1)


def test_an_unknown_mtu_blocks_any_request() -> None:
    report = check(ring(ab=None, bz=None))
    assert report.path_mtu is None
    assert report.narrowest_mtu == 9000
    refusal = report.refusal(68)
    assert isinstance(refusal, PathMtuUnknown)
    assert [link.name for link in refusal.links] == ["ab", "bz"]


def test_unknown_comes_before_too_narrow() -> None:
    assert isinstance(check(ring(az=1500, ab=None)).refusal(1558), PathMtuUnknown)


def test_an_unknown_link_off_the_path_blocks_nothing() -> None:
    assert check(ring(ab=None), any_single_failure=False).refusal(9000) is None


def test_without_a_path_the_two_routers_and_the_family_are_named() -> None:
    report = check(ring(), z="y")
    refusal = report.refusal(68)
    assert report.path_mtu is None
    assert isinstance(refusal, NoPath)
    assert (refusal.a.name, refusal.z.name, refusal.family) == ("a", "y", Family.V4)
