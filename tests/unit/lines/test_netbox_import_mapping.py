"""The mapping of NetBox's objects: errors in them are reported, and never guessed."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.netbox_sync.client import Configuration
from portal.netbox_sync.import_mapping import CUSTOMER, KINDS, LINK, PORT, ROUTER, SITE, Wish, wanted
from portal.netbox_sync.netbox_reader import Address, Device, Interface, Named, Observed

AT = Configuration(url="http://netbox", token="")
BERN = Named(1, "Bern")
UNI = frozenset({"longline-uni"})


def device(id: int, name: str | None = None, **more: Any) -> Device:
    return Device(**{"id": id, "name": name or f"r{id}", "site": BERN, **more})


def interface(id: int, device: int = 1, **more: Any) -> Interface:
    values = {"id": id, "device": device, "name": f"if{id}", "type": "10gbase-x-sfpp", "mtu": 9000, **more}
    return Interface(**values)


def mapped(*interfaces: Interface, devices: int = 3, **more: Any) -> Wish:
    categories = {
        "devices": [device(n) for n in range(1, devices + 1)],
        "interfaces": list(interfaces),
        **more,
    }
    return wanted(Observed(**categories), AT)


def codes(wish: Wish) -> list[str]:
    return sorted(finding.code for finding in wish.findings if finding.code != "no_loopback")


def joined(a: Interface, z: Interface, **more: Any) -> tuple[Interface, Interface]:
    def to(here: Interface, there: Interface) -> Interface:
        values = {name: getattr(here, name) for name in Interface.__dataclass_fields__}
        return Interface(**{**values, "far": (there.id,), "reachable": True, **more})

    return to(a, z), to(z, a)


@pytest.mark.parametrize(
    ("type", "speed_kbps", "expected"),
    [
        ("1000base-t", None, 10**9),
        ("2.5gbase-t", None, 2_500_000_000),
        ("100gbase-x-qsfp28", None, 10**11),
        ("1.6tbase-cr8", None, 1_600_000_000_000),
        ("other", 25_000_000, 25 * 10**9),
        ("100base-tx", 10_000, 10**7),
    ],
)
def test_a_port_is_as_fast_as_netbox_or_its_type_says(
    type: str, speed_kbps: int | None, expected: int
) -> None:
    (port,) = mapped(interface(1, type=type, speed_kbps=speed_kbps, tags=UNI)).rows[PORT]
    assert (port.fields["speed_bps"], port.lacks) == (expected, "")


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"type": "other"}, "speed_missing"),
        ({"mtu": None}, "port_mtu_missing"),
        ({"mtu": 65536}, "mtu_impossible"),
        ({"name": "eth 0"}, "interface_name"),
        ({"tags": UNI | {"longline-enni"}}, "two_uses"),
    ],
)
def test_an_impossible_port_is_reported(facts: dict[str, Any], code: str) -> None:
    wish = mapped(interface(1, **{"tags": UNI, **facts}))
    assert codes(wish) == [code]
    assert all(port.lacks for port in wish.rows[PORT])


def test_a_cable_is_one_link_with_unchanged_mtus() -> None:
    (link,) = mapped(*joined(interface(1), interface(2, 2, mtu=None))).rows[LINK]
    assert (link.fields["a_ip_mtu"], link.fields["z_ip_mtu"]) == (9000, None)


def test_a_ring_becomes_links_without_an_endless_loop() -> None:
    ring = [
        *joined(interface(1, 1), interface(2, 2)),
        *joined(interface(3, 2), interface(4, 3)),
        *joined(interface(5, 3), interface(6, 1)),
    ]
    wish = mapped(*ring)
    assert (len(wish.rows[LINK]), codes(wish)) == (3, [])


def test_two_cables_of_a_bundle_are_one_link() -> None:
    bundles = interface(10, 1, type="lag"), interface(20, 2, type="lag")
    members = [
        *joined(interface(1, 1), interface(2, 2)),
        *joined(interface(3, 1), interface(4, 2)),
    ]
    members = [
        Interface(**{**{f: getattr(m, f) for f in Interface.__dataclass_fields__}, "lag": m.device * 10})
        for m in members
    ]
    wish = mapped(*bundles, *members)
    assert [(link.fields["a_interface"], link.fields["z_interface"]) for link in wish.rows[LINK]] == [
        ("if10", "if20")
    ]
    assert codes(wish) == []


def test_cables_without_a_link_are_reported() -> None:
    assert codes(mapped(*joined(interface(1), interface(2)))) == ["cable_within_router"]
    assert codes(mapped(*joined(interface(1), interface(2, 2), reachable=False))) == ["cable_not_connected"]
    assert codes(mapped(interface(1, far=(2, 3), reachable=True))) == ["cable_to_many"]
    # A cable to a switch that the portal does not know.
    assert codes(mapped(interface(1, far=(99,), reachable=True))) == []
    # A cable to the same interface, which exists only in a broken database.
    assert codes(mapped(interface(1, far=(1,), reachable=True))) == ["cable_within_router"]


def test_an_interface_in_two_links_makes_none() -> None:
    wish = mapped(
        interface(1, 1, far=(2,), reachable=True),
        interface(2, 2, far=(3,), reachable=True),
        interface(3, 3, far=(2,), reachable=True),
    )
    assert (wish.rows[LINK], codes(wish)) == ([], ["interface_in_two_links", "interface_in_two_links"])


def test_a_port_that_is_cabled_to_a_customer_is_no_link() -> None:
    wish = mapped(*joined(interface(1, tags=UNI), interface(2, 2)))
    assert (len(wish.rows[PORT]), wish.rows[LINK], codes(wish)) == (1, [], [])


def test_duplicates_are_not_imported() -> None:
    tenants = [Named(1, "Dairy"), Named(2, "Dairy"), Named(3, "Bakery")]
    devices = [device(1, "rhino"), device(2, "RHINO"), device(3, "hippo", site=Named(2, "Basel"))]
    wish = wanted(Observed(devices=devices, tenants=tenants), AT)
    assert [row.name for row in wish.rows[ROUTER]] == ["hippo"]
    assert codes(wish) == ["duplicate"] * 4
    assert [row.name for row in wish.rows[CUSTOMER]] == ["Bakery"]
    assert [row.name for row in wish.rows[SITE]] == ["Basel"]


def test_which_of_two_addresses_ends_tunnels_is_not_guessed() -> None:
    addresses = [Address(1, "loop0", 4, "10.0.0.1"), Address(1, "loop0", 4, "10.0.0.2")]
    wish = mapped(devices=1, addresses=[*addresses, Address(1, "loop0", 6, "fd00::1")])
    assert wish.rows[ROUTER][0].fields == {"site": 1, "loopback6": "fd00::1"}
    assert codes(wish) == ["two_addresses"]


def test_an_address_on_two_routers_belongs_to_neither() -> None:
    addresses = [Address(n, "loop0", 4, "10.0.0.1") for n in (1, 2)]
    wish = mapped(devices=2, addresses=addresses)
    assert ["loopback4" in row.fields for row in wish.rows[ROUTER]] == [False, False]
    assert codes(wish) == ["address_twice"] * 2


_IDS = st.integers(1, 6)
_INTERFACES = st.lists(
    st.builds(
        Interface,
        id=_IDS,
        device=st.integers(1, 4),
        name=st.sampled_from(["a", "b", "", "x y", "n" * 64]),
        type=st.sampled_from(["lag", "10gbase-x-sfpp", "other"]),
        mtu=st.none() | st.integers(-1, 70000),
        speed_kbps=st.none() | st.integers(-1, 10**12),
        tags=st.frozensets(st.sampled_from(["longline-uni", "longline-enni"])),
        lag=st.none() | _IDS,
        far=st.lists(_IDS, max_size=2).map(tuple),
        reachable=st.booleans(),
        tenant=st.none() | st.builds(Named, _IDS, st.sampled_from(["x", "y"])),
    ),
    max_size=8,
    unique_by=lambda each: each.id,
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(interfaces=_INTERFACES)
def test_an_interface_has_one_use_for_any_netbox_content(interfaces: list[Interface]) -> None:
    wish = mapped(*interfaces)
    uses = [row.place for row in wish.rows[PORT]]
    for link in wish.rows[LINK]:
        uses += list(link.place)
        assert link.fields["a_router"] != link.fields["z_router"]
    assert len(uses) == len(set(uses)) or len({(each.device, each.name) for each in interfaces}) < len(
        interfaces
    )
    for kind in KINDS:
        ids = [row.id for row in wish.rows[kind]]
        assert len(ids) == len(set(ids))


TURNED = "Be\u202enr"


@pytest.mark.parametrize("name", [TURNED, "Be\x07rn", "Be\nrn"])
def test_an_unprintable_site_or_customer_name_is_reported_and_the_rest_is_imported(name: str) -> None:
    odd = Named(2, name)
    ports = [interface(1, tags=UNI, tenant=odd), interface(2, tags=UNI)]
    wish = wanted(Observed(devices=[device(1), device(2, site=odd)], interfaces=ports), AT)
    assert codes(wish) == ["not_plain_text"] * 2
    assert {finding.subject for finding in wish.findings if finding.code == "not_plain_text"} == {
        name.replace(name[2], " ")
    }
    assert [row.name for row in wish.rows[SITE]] == ["Bern"]
    assert wish.rows[CUSTOMER] == []
    assert len(wish.rows[PORT]) == 2


def test_a_description_is_cleaned_and_the_port_is_created() -> None:
    (port,) = mapped(interface(1, tags=UNI, description=f"dock\t4 {TURNED}")).rows[PORT]
    assert port.fields["description"] == "dock 4 Be nr"


@pytest.mark.parametrize("sign", ["\u202e", "\0", "\ud800"])
def test_a_refusal_is_reported_in_plain_text(sign: str) -> None:
    devices = [device(1), device(2, f"r{sign}2"), device(3, sign)]
    wish = wanted(Observed(devices=devices, interfaces=[interface(1, name=f"eth{sign}0")]), AT)
    reported = {finding.code: finding.subject for finding in wish.findings if finding.code != "no_loopback"}
    assert reported["interface_name"] == "r1:eth 0"
    named = [finding.subject for finding in wish.findings if finding.code == "router_name"]
    assert named == ["r 2", "device 3"]
