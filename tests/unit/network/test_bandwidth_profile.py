"""The ends that a VPP can police, and the depth of their token buckets."""

import pytest

from portal.core.network.bandwidth_profile import Policing, bandwidth_profile
from portal.core.network.vlan_tags import Tagging


@pytest.mark.parametrize("tagging", Tagging)
@pytest.mark.parametrize("policing", Policing)
def test_whole_ports_need_policers_and_vlans_a_vpp_that_polices_sub_interfaces(
    policing: Policing, tagging: Tagging
) -> None:
    able = {Policing.NONE: set(), Policing.PORT: {Tagging.UNTAGGED}, Policing.SUBINTERFACE: set(Tagging)}
    assert policing.covers(tagging) == (tagging in able[policing])


@pytest.mark.parametrize(
    ("cir_bps", "frame", "cbs_bytes"),
    [
        (1_000_000_000, 1514, 1_250_000),  # 10 ms
        (10_000_000, 1514, 15_220),  # 10 frames with two tags
        (1, 1514, 15_220),
        (10_000_000, 9014, 90_220),
        (12_176_000, 1514, 15_220),  # both limits are equal
        (12_177_000, 1514, 15_221),
    ],
)
def test_the_bucket_has_10_ms_and_at_least_10_frames(cir_bps: int, frame: int, cbs_bytes: int) -> None:
    assert bandwidth_profile(cir_bps=cir_bps, frame=frame).cbs_bytes == cbs_bytes


@pytest.mark.parametrize(("cir_bps", "policed_bps"), [(1, 1000), (999, 1000), (1000, 1000), (1001, 1001)])
def test_a_rate_below_1_kbit_s_is_policed_at_1_kbit_s(cir_bps: int, policed_bps: int) -> None:
    profile = bandwidth_profile(cir_bps=cir_bps, frame=1514)
    assert (profile.cir_bps, profile.eir_bps, profile.ebs_bytes) == (policed_bps, 0, 0)


def test_the_largest_profile_fits_the_contract() -> None:
    profile = bandwidth_profile(cir_bps=10**12, frame=65535)
    assert profile.cir_bps <= 4_294_967_295_000
    assert profile.cbs_bytes < 2**31
