import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.core.network.vlan_tags import (
    Tagging,
    VlanMissing,
    VlanNotWanted,
    VlanOutOfRange,
    WholePortIsExact,
    carried_tags,
    check_tagging,
    check_vlan,
)


@pytest.mark.parametrize(
    ("tagging", "tpids"),
    [
        ("untagged", ()),
        ("dot1q", (0x8100,)),
        ("qinq", (0x8100, 0x8100)),
        ("dot1ad", (0x88A8, 0x8100)),
    ],
)
def test_each_tagging_selects_by_its_own_tpids(tagging: str, tpids: tuple[int, ...]) -> None:
    assert Tagging(tagging).tpids == tpids
    assert Tagging(tagging).selecting_tags == len(tpids)


@pytest.mark.parametrize("vlan", [1, 2, 4093, 4094])
def test_vlans_from_1_to_4094_are_accepted(vlan: int) -> None:
    assert check_vlan(vlan, field="outer_vlan") == vlan


@pytest.mark.parametrize("vlan", [-1, 0, 4095, 4096, "100", 100.0, True, None])
def test_any_other_vlan_is_refused_with_its_field(vlan: object) -> None:
    with pytest.raises(VlanOutOfRange) as refused:
        check_vlan(vlan, field="a_end.outer_vlan")
    assert refused.value.field == "a_end.outer_vlan"
    assert refused.value.value is vlan
    assert (refused.value.minimum, refused.value.maximum) == (1, 4094)


@pytest.mark.parametrize(
    ("tagging", "outer", "inner"),
    [
        (Tagging.UNTAGGED, None, None),
        (Tagging.DOT1Q, 100, None),
        (Tagging.QINQ, 100, 200),
        (Tagging.DOT1AD, 100, 100),
    ],
)
def test_a_tagging_with_exactly_its_vlans_is_accepted(
    tagging: Tagging, outer: int | None, inner: int | None
) -> None:
    check_tagging(tagging, outer_vlan=outer, inner_vlan=inner)


@pytest.mark.parametrize(
    ("tagging", "outer", "inner", "field"),
    [
        (Tagging.UNTAGGED, 100, None, "outer_vlan"),
        (Tagging.UNTAGGED, None, 100, "inner_vlan"),
        (Tagging.DOT1Q, 100, 200, "inner_vlan"),
    ],
)
def test_a_vlan_that_the_tagging_does_not_use_is_refused(
    tagging: Tagging, outer: int | None, inner: int | None, field: str
) -> None:
    with pytest.raises(VlanNotWanted) as refused:
        check_tagging(tagging, outer_vlan=outer, inner_vlan=inner)
    assert (refused.value.field, refused.value.tagging) == (field, tagging)


@pytest.mark.parametrize(
    ("tagging", "outer", "inner", "field"),
    [
        (Tagging.DOT1Q, None, None, "outer_vlan"),
        (Tagging.QINQ, 100, None, "inner_vlan"),
        (Tagging.DOT1AD, 100, None, "inner_vlan"),  # a single S-tag is not offered
        (Tagging.DOT1AD, None, 100, "outer_vlan"),
    ],
)
def test_a_tagging_without_one_of_its_vlans_is_refused(
    tagging: Tagging, outer: int | None, inner: int | None, field: str
) -> None:
    with pytest.raises(VlanMissing) as refused:
        check_tagging(tagging, outer_vlan=outer, inner_vlan=inner)
    assert (refused.value.field, refused.value.tagging) == (field, tagging)


@pytest.mark.parametrize(("outer", "inner", "field"), [(4095, 1, "outer_vlan"), (1, 0, "inner_vlan")])
def test_the_vlan_out_of_range_is_named(outer: int, inner: int, field: str) -> None:
    with pytest.raises(VlanOutOfRange) as refused:
        check_tagging(Tagging.QINQ, outer_vlan=outer, inner_vlan=inner)
    assert refused.value.field == field


def test_a_whole_port_cannot_match_inexactly() -> None:
    with pytest.raises(WholePortIsExact):
        check_tagging(Tagging.UNTAGGED, outer_vlan=None, inner_vlan=None, exact_match=False)


@pytest.mark.parametrize(
    ("tagging", "exact_match", "tags"),
    [
        (Tagging.UNTAGGED, True, 2),
        (Tagging.DOT1Q, True, 0),
        (Tagging.DOT1Q, False, 1),
        (Tagging.QINQ, True, 0),
        (Tagging.QINQ, False, 1),
        (Tagging.DOT1AD, True, 0),
        (Tagging.DOT1AD, False, 1),
    ],
)
def test_tags_that_enter_the_tunnel_at_one_end(tagging: Tagging, exact_match: bool, tags: int) -> None:
    assert tagging.carried_tags(exact_match=exact_match) == tags


ENDS = st.tuples(st.sampled_from(Tagging), st.booleans())


@given(ENDS, ENDS)
def test_the_tunnel_carries_the_larger_number_of_tags(
    a: tuple[Tagging, bool], z: tuple[Tagging, bool]
) -> None:
    tags = carried_tags([a, z])
    assert tags == carried_tags([z, a])
    assert tags in {tagging.carried_tags(exact_match=exact) for tagging, exact in (a, z)}
    assert all(tags >= tagging.carried_tags(exact_match=exact) for tagging, exact in (a, z))
