"""The differences to NetBox, field by field: neither changes in NetBox nor manual changes are lost."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.netbox_sync.import_changes import LocalRow, differences
from portal.netbox_sync.import_mapping import LINK, PORT, ROUTER, SITE, Wanted, Wish, sides_place

SAME = object()


def site(name: str = "Bern", **more: Any) -> Wanted:
    return Wanted(SITE, 7, (name,), name, {"name": name}, **more)


def ours(name: str, *, taken: dict[str, Any] | None = None, id: int | None = 7) -> LocalRow:
    return LocalRow(SITE, 70, name, (name,), {"name": name}, id, taken or {})


def wish(*rows: Wanted) -> Wish:
    made = Wish()
    for row in rows:
        made.rows[row.kind].append(row)
    return made


@pytest.mark.parametrize(
    ("taken", "here", "there", "becomes", "kept"),
    [
        ("Bern", "Bern", "Bern", SAME, False),
        ("Bern", "Bern", "Berne", "Berne", False),
        ("Bern", "Berna", "Bern", SAME, True),
        ("Bern", "Berna", "Berne", SAME, True),
        # Both have the same value by now: from now on the portal follows NetBox again.
        ("Bern", "Berne", "Berne", SAME, False),
    ],
)
def test_a_field_has_three_sides(taken: str, here: str, there: str, becomes: Any, kept: bool) -> None:
    found = differences(wish(site(there)), {SITE: [ours(here, taken={"name": taken})]})
    written = [change for change in found.changes if change.writes]
    assert [change.fields["name"][1] for change in written] == ([] if becomes is SAME else [becomes])
    assert [finding.code for finding in found.findings] == (["kept"] if kept else [])


def test_a_row_made_in_the_portal_matches_by_name_without_changes() -> None:
    (change,) = differences(wish(site()), {SITE: [ours("Bern", id=None)]}).changes
    assert (change.row, change.writes, change.take) == (70, False, {"name": "Bern"})


def test_an_object_re_created_in_netbox_keeps_its_row() -> None:
    (change,) = differences(wish(site()), {SITE: [ours("Bern", taken={"name": "Bern"}, id=3)]}).changes
    assert (change.row, change.id, change.writes) == (70, 7, False)


def test_a_reference_to_a_row_matched_now_is_no_difference() -> None:
    router = Wanted(ROUTER, 1, ("rhino",), "rhino", {"site": 7})
    here = LocalRow(ROUTER, 10, "rhino", ("rhino",), {"site": "row 70"})
    changes = differences(wish(site(), router), {SITE: [ours("Bern", id=None)], ROUTER: [here]}).changes
    assert [(change.kind, change.writes) for change in changes] == [(SITE, False), (ROUTER, False)]


def test_a_link_matches_in_both_orders_of_its_sides() -> None:
    routers = [Wanted(ROUTER, n, (f"r{n}",), f"r{n}", {"site": 7}) for n in (1, 2)]
    existing_routers = [
        LocalRow(ROUTER, n * 10, f"r{n}", (f"r{n}",), {"site": 7}, n, {"site": 7}) for n in (1, 2)
    ]
    fields = {
        "a_router": 1,
        "a_interface": "x",
        "a_ip_mtu": 9000,
        "z_router": 2,
        "z_interface": "y",
        "z_ip_mtu": None,
    }
    link = Wanted(LINK, 5, sides_place((1, "x"), (2, "y")), "link", fields)
    turned = {
        "a_router": 2,
        "a_interface": "y",
        "a_ip_mtu": None,
        "z_router": 1,
        "z_interface": "x",
        "z_ip_mtu": 1500,
    }
    here = LocalRow(LINK, 50, "link", sides_place((2, "y"), (1, "x")), turned)
    found = differences(wish(site(), *routers, link), {ROUTER: existing_routers, LINK: [here]})
    assert [change.fields for change in found.changes if change.kind == LINK] == [{}]
    assert [(finding.code, finding.facts) for finding in found.findings] == [
        ("kept", {"field": "z_ip_mtu", "ours": 1500, "theirs": 9000})
    ]


def test_a_port_without_required_facts_is_not_created() -> None:
    port = Wanted(PORT, 9, (1, "x"), "r1:x", {"speed_bps": 10**9, "kind": "uni"}, lacks="port_mtu_missing")
    assert differences(wish(port), {}).changes == []


def test_a_row_missing_in_netbox_is_reported_and_stays() -> None:
    found = differences(wish(), {SITE: [ours("Bern", taken={"name": "Bern"})]})
    assert (found.changes, [each.code for each in found.findings]) == ([], ["gone"])
    assert differences(wish(), {SITE: [ours("Bern", id=None)]}).findings == []


_NAMES = st.sampled_from(["a", "b", "c"])


@given(
    there=st.lists(st.tuples(st.integers(1, 4), _NAMES), unique_by=(lambda row: row[0], lambda row: row[1])),
    here=st.lists(
        st.tuples(st.integers(1, 4), _NAMES, _NAMES), unique_by=(lambda row: row[0], lambda row: row[1])
    ),
)
def test_a_second_import_changes_nothing(
    there: list[tuple[int, str]], here: list[tuple[int, str, str]]
) -> None:
    wanted = wish(*(Wanted(SITE, n, (name,), name, {"name": name}) for n, name in there))
    rows = [LocalRow(SITE, n, name, (name,), {"name": name}, n, {"name": taken}) for n, name, taken in here]
    for change in differences(wanted, {SITE: rows}).changes:
        if change.row is None:
            row = LocalRow(SITE, 100 + change.id, change.name, change.place, {}, change.id)
            rows.append(row)
        else:
            row = next(each for each in rows if each.row == change.row)
        row.fields |= {name: after for name, (_, after) in change.fields.items()}
        row.id, row.taken = change.id, change.take
        row.place = (row.fields["name"],)
    assert differences(wanted, {SITE: rows}).changes == []
