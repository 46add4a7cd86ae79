import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.network.encapsulations import TUNNELS, Transport
from portal.core.network.required_mtu import (
    MAX_FRAME,
    MAX_SVC_MTU,
    MIN_SVC_MTU,
    MtuPolicy,
    SvcMtuOutOfRange,
    carried_frame,
    largest_svc_mtu,
    overhead,
    required_ip_mtu,
    uni_frame,
)
from portal.core.network.vlan_tags import Tagging

CONTRACT = Path(__file__).parents[2] / "contract"


def rows(name: str) -> list[dict[str, str]]:
    with (CONTRACT / name).open(newline="") as table:
        return list(csv.DictReader(table))


def case(row: dict[str, str]) -> str:
    return "-".join(value for value in row.values() if value)


@pytest.mark.parametrize("row", rows("mtu.csv"), ids=case)
def test_required_mtu_agrees_with_the_table(row: dict[str, str]) -> None:
    encapsulation = row["encapsulation"].removesuffix("-key")
    gre_key = row["encapsulation"] == "gre-key"
    transport = Transport(encapsulation + row["family"])
    policy = MtuPolicy(row["policy"])
    svc_mtu, tags = int(row["svc_mtu"]), int(row["carried_tags"])

    frame = carried_frame(svc_mtu, carried_tags=tags)
    required = required_ip_mtu(frame, transport, policy, gre_key=gre_key)

    assert frame == int(row["frame"])
    if not row["required_underlay_ip_mtu"]:
        assert required is None
        return
    assert required == int(row["required_underlay_ip_mtu"])
    carried = [
        largest_svc_mtu(required + byte, transport, policy, carried_tags=tags, gre_key=gre_key)
        for byte in (-1, 0, 1)
    ]
    assert carried == [svc_mtu - 1, svc_mtu, svc_mtu + 1]


@pytest.mark.parametrize("row", rows("uni-frames.csv"), ids=case)
def test_frames_on_the_uni_agree_with_the_table(row: dict[str, str]) -> None:
    svc_mtu, tags = int(row["svc_mtu"]), int(row["tags_carried"])
    assert uni_frame(svc_mtu, tagging=Tagging(row["tagging"]), carried_tags=tags) == int(
        row["frame_on_uni_wire"]
    )
    assert carried_frame(svc_mtu, carried_tags=tags) == int(row["frame_in_tunnel"])


@pytest.mark.parametrize("svc_mtu", [MIN_SVC_MTU, MIN_SVC_MTU + 1, MAX_SVC_MTU - 1, MAX_SVC_MTU])
def test_the_limits_of_svc_mtu_belong_to_the_range(svc_mtu: int) -> None:
    assert 82 <= carried_frame(svc_mtu, carried_tags=0) < carried_frame(svc_mtu, carried_tags=2) <= MAX_FRAME


@pytest.mark.parametrize("svc_mtu", [-1, 0, 67, MAX_SVC_MTU + 1])
def test_an_svc_mtu_one_byte_beyond_its_limits_is_refused(svc_mtu: int) -> None:
    with pytest.raises(SvcMtuOutOfRange) as refused:
        carried_frame(svc_mtu, carried_tags=0)
    assert refused.value.field == "svc_mtu"
    assert (refused.value.value, refused.value.minimum, refused.value.maximum) == (svc_mtu, 68, 65513)
    with pytest.raises(SvcMtuOutOfRange):
        uni_frame(svc_mtu, tagging=Tagging.DOT1Q, carried_tags=0)


def test_an_underlay_that_just_carries_the_smallest_packet() -> None:
    smallest = required_ip_mtu(carried_frame(68, carried_tags=0), Transport.VXLAN4, MtuPolicy.EXACT)
    assert smallest == 118
    assert largest_svc_mtu(118, Transport.VXLAN4, MtuPolicy.EXACT, carried_tags=0) == 68
    assert largest_svc_mtu(117, Transport.VXLAN4, MtuPolicy.EXACT, carried_tags=0) is None


SVC_MTUS = st.integers(MIN_SVC_MTU, MAX_SVC_MTU)
TAGS = st.integers(0, 2)
TUNNEL = st.sampled_from(TUNNELS)
POLICY = st.sampled_from(MtuPolicy)


@given(SVC_MTUS, TAGS, TUNNEL, POLICY, st.booleans())
def test_a_required_mtu_carries_the_requested_packet(
    svc_mtu: int, tags: int, tunnel: Transport, policy: MtuPolicy, gre_key: bool
) -> None:
    frame = carried_frame(svc_mtu, carried_tags=tags)
    required = required_ip_mtu(frame, tunnel, policy, gre_key=gre_key)
    assert required is not None
    assert largest_svc_mtu(required, tunnel, policy, carried_tags=tags, gre_key=gre_key) == svc_mtu


@given(st.integers(68, 65535), TAGS, TUNNEL, POLICY, st.booleans())
def test_the_largest_svc_mtu_fits_and_one_byte_more_does_not(
    ip_mtu: int, tags: int, tunnel: Transport, policy: MtuPolicy, gre_key: bool
) -> None:
    def fits(svc_mtu: int) -> bool:
        frame = svc_mtu + 14 + 4 * tags
        return frame + overhead(tunnel, policy, gre_key=gre_key) <= ip_mtu

    largest = largest_svc_mtu(ip_mtu, tunnel, policy, carried_tags=tags, gre_key=gre_key)
    if largest is None:
        assert not fits(MIN_SVC_MTU)
    else:
        assert fits(largest)
        assert not fits(largest + 1)


@given(TUNNEL, st.booleans())
def test_planning_never_reserves_less_than_exact(tunnel: Transport, gre_key: bool) -> None:
    planning = overhead(tunnel, MtuPolicy.PLANNING, gre_key=gre_key)
    assert planning >= overhead(tunnel, MtuPolicy.EXACT, gre_key=gre_key)
    assert planning == overhead(tunnel, MtuPolicy.PLANNING)


@given(SVC_MTUS, st.sampled_from(Tagging), TAGS)
def test_the_uni_wire_carries_the_selecting_tags_on_top(svc_mtu: int, tagging: Tagging, tags: int) -> None:
    on_wire = uni_frame(svc_mtu, tagging=tagging, carried_tags=tags)
    assert on_wire - carried_frame(svc_mtu, carried_tags=tags) == 4 * len(tagging.tpids)
