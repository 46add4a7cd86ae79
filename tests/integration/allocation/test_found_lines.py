"""The portal finds foreign lines in the reports of both routers and shows their inconsistencies."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import User
from portal.inventory.found_lines import (
    FoundLine,
    Odd,
    Oddity,
    Standing,
    circuits_at,
    found_circuits,
    found_lines,
)
from portal.inventory.models import ObservedCircuit, ObservedInterface
from portal.inventory.observation_store import circuits_store
from portal.inventory.reported_observation import CircuitReport
from tests.integration.api.test_api_v1 import client
from tests.integration.circuits import attachment, circuit, tunnel
from tests.integration.isp import Isp
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
Show = Callable[..., list[FoundLine]]


@pytest.fixture
def show(isp: Isp) -> Show:
    def show(**by_router: list[CircuitReport]) -> list[FoundLine]:
        for name, circuits in by_router.items():
            circuits_store(isp.routers[name], circuits)
        return list(found_lines(found_circuits()))

    return show


def half(here: str, there: str, key: int, *tags: int, of: str = "vxlan") -> CircuitReport:
    return circuit(attachment("host-cust1", *tags), tunnel(here, there, key, of))


@pytest.mark.parametrize(("of", "transport"), [("vxlan", "vxlan4"), ("geneve", "geneve4"), ("gre", "gre4")])
def test_two_matching_halves_are_a_line(show: Show, of: str, transport: str) -> None:
    (line,) = show(
        rhino=[half("rhino", "hippo", 7, 300, 20, of=of)], hippo=[half("hippo", "rhino", 7, 301, of=of)]
    )
    assert (line.standing, line.transport, line.key, line.odd) == (Standing.COMPLETE, transport, 7, ())
    assert line.a
    assert line.z
    assert (line.a.router.name, line.a.port, line.a.tagging) == ("rhino", "host-cust1", "qinq")
    assert (line.a.outer_vlan, line.a.inner_vlan) == (300, 20)
    assert (line.z.router.name, line.z.tagging, line.z.outer_vlan, line.z.inner_vlan) == (
        "hippo",
        "dot1q",
        301,
        None,
    )


def test_whole_port_and_local_line_are_found(show: Show) -> None:
    (line,) = show(rhino=[circuit(attachment("host-cust1"), attachment("host-cust2", 9))])
    assert (line.standing, line.transport, line.key) == (Standing.COMPLETE, "l2xc", None)
    assert line.a
    assert line.z
    assert (line.a.tagging, line.a.outer_vlan, line.z.outer_vlan) == ("untagged", None, 9)


def codes(line: FoundLine) -> set[str]:
    return {each.code for each in line.odd}


def test_half_without_a_far_half_is_one_sided(show: Show) -> None:
    (line,) = show(rhino=[half("rhino", "hippo", 7, 300)])
    assert (line.standing, line.z) == (Standing.ONE_SIDED, None)
    assert line.odd[0].code == Oddity.NO_FAR_END
    assert line.odd[0].facts == {"remote": "10.255.0.2", "key": None}


def test_different_vni_at_the_far_end_is_named(show: Show) -> None:
    lines = show(rhino=[half("rhino", "hippo", 7, 300)], hippo=[half("hippo", "rhino", 8, 300)])
    assert {line.standing for line in lines} == {Standing.MISMATCHED}
    assert [(codes(line), line.odd[0].facts["key"]) for line in lines] == [
        ({"other_key"}, 8),
        ({"other_key"}, 7),
    ]


def test_of_several_far_vnis_the_one_with_equal_vlans_is_named(show: Show) -> None:
    lines = show(
        rhino=[
            half("rhino", "hippo", 7, 303),
            half("rhino", "hippo", 8, 304),
            half("rhino", "hippo", 9, 305),
        ],
        hippo=[half("hippo", "rhino", 108, 304), half("hippo", "rhino", 107, 301)],
    )
    assert {line.key: (codes(line), line.odd[0].facts["key"]) for line in lines} == {
        7: ({"no_far_end"}, None),
        8: ({"other_key"}, 108),
        9: ({"no_far_end"}, None),
        108: ({"other_key"}, 8),
        107: ({"no_far_end"}, None),
    }


def test_last_two_halves_match_despite_different_vlans(show: Show) -> None:
    lines = show(
        rhino=[half("rhino", "hippo", 7, 303), half("rhino", "hippo", 8, 304)],
        hippo=[half("hippo", "rhino", 108, 304), half("hippo", "rhino", 107, 301)],
    )
    assert {line.key: line.odd[0].facts["key"] for line in lines} == {7: 107, 8: 108, 107: 7, 108: 8}


def test_vnis_of_complete_lines_are_not_named_as_other_keys(show: Show) -> None:
    lines = show(
        rhino=[half("rhino", "hippo", 7, 300), half("rhino", "hippo", 9, 302)],
        hippo=[half("hippo", "rhino", 7, 300)],
    )
    assert {line.key: line.standing for line in lines} == {7: Standing.COMPLETE, 9: Standing.ONE_SIDED}


def test_tunnel_to_a_third_router_does_not_belong_to_the_line(show: Show) -> None:
    lines = show(
        rhino=[half("rhino", "hippo", 7, 300)],
        hippo=[half("hippo", "zebra", 7, 300)],
        zebra=[half("zebra", "rhino", 7, 300)],
    )
    assert [line.standing for line in lines] == [Standing.ONE_SIDED] * 3


def test_equal_tunnels_in_two_tables_match_by_the_underlay_table(show: Show) -> None:
    def in_table(here: str, there: str, table: int) -> CircuitReport:
        return circuit(attachment("host-cust1", 300 + table), tunnel(here, there, 7, table=table))

    lines = show(
        rhino=[in_table("rhino", "hippo", 0), in_table("rhino", "hippo", 10)],
        hippo=[in_table("hippo", "rhino", 20), in_table("hippo", "rhino", 0)],
    )
    assert [(line.a and line.a.outer_vlan, line.z and line.z.outer_vlan) for line in lines] == [
        (300, 300),
        (310, 320),
    ]
    assert [codes(line) for line in lines] == [set(), {"other_table"}]
    lines = show(
        rhino=[in_table("rhino", "hippo", 10), in_table("rhino", "hippo", 20)],
        hippo=[in_table("hippo", "rhino", 20), in_table("hippo", "rhino", 10)],
    )
    assert {(line.a and line.a.outer_vlan, line.z and line.z.outer_vlan) for line in lines} == {
        (310, 310),
        (320, 320),
    }


@pytest.mark.parametrize(
    ("out", "back", "missing"), [(True, False, "vxlan_tunnel7"), (False, True, "host-cust1.300")]
)
def test_one_way_cross_connect_names_the_missing_direction(
    show: Show, out: bool, back: bool, missing: str
) -> None:
    one_way = circuit(attachment("host-cust1", 300), tunnel("rhino", "hippo", 7), out=out, back=back)
    (line,) = show(rhino=[one_way], hippo=[half("hippo", "rhino", 7, 300)])
    assert line.standing == Standing.ONE_DIRECTIONAL
    assert [(each.code, each.where, each.facts) for each in line.odd] == [
        (Oddity.ONE_WAY, "rhino", {"missing_from": missing})
    ]


def test_unused_tunnel_is_reported(show: Show) -> None:
    (line,) = show(rhino=[circuit(tunnel("rhino", "hippo", 7), None)], hippo=[half("hippo", "rhino", 7, 300)])
    assert (line.standing, codes(line), line.a) == (Standing.ONE_SIDED, {"carries_nothing"}, None)
    assert line.z is not None


def test_values_that_a_line_cannot_have_are_named_mismatches(show: Show, isp: Isp) -> None:
    for router, ip_mtu in (("rhino", 9000), ("hippo", 1500)):
        interfaces = ObservedInterface.objects.filter(router=isp.routers[router], name="host-cust1")
        assert interfaces.update(ip_mtu=ip_mtu) == 1
    to_hippo = tunnel("rhino", "hippo", 4, standard=False)
    odd = [
        (half("rhino", "hippo", 1, 300), "other_mtu"),
        (circuit(attachment("host-cust2", 301, rewrite=0), tunnel("rhino", "hippo", 2)), "keeps_tags"),
        (circuit(attachment("host-cust2", 302, wide=True), tunnel("rhino", "hippo", 3)), "picks_widely"),
        (circuit(attachment("host-cust2", 303), to_hippo), "not_standard"),
        (circuit(attachment("host-cust2", 307), tunnel("rhino", "hippo", 7, table=10)), "other_table"),
        (circuit(tunnel("rhino", "hippo", 5), tunnel("rhino", "zebra", 6)), "between_tunnels"),
    ]
    others = [half("hippo", "rhino", 1, 300)]
    others += [circuit(attachment("host-cust2", key), tunnel("hippo", "rhino", key)) for key in (2, 3, 4, 7)]
    lines = show(rhino=[each for each, _ in odd], hippo=others)
    assert [codes(line) for line in lines] == [{code} for _, code in odd]
    assert {line.standing for line in lines} == {Standing.MISMATCHED}


def test_repeated_reports_write_nothing_and_missing_objects_are_removed(show: Show, isp: Isp) -> None:
    circuits = [half("rhino", "hippo", key, key) for key in range(1, 6)]
    show(rhino=circuits)
    before = dict(ObservedCircuit.objects.values_list("near", "pk"))
    changed = circuit(attachment("host-cust1", 2, rewrite=0), tunnel("rhino", "hippo", 2))
    with CaptureQueriesContext(connection) as captured:
        circuits_store(isp.routers["rhino"], [circuits[0], changed, *circuits[3:]])
    after = dict(ObservedCircuit.objects.values_list("near", "pk"))
    assert after == {near: pk for near, pk in before.items() if near != "host-cust1.3"}
    assert [each["sql"].split()[0] for each in captured if "SAVEPOINT" not in each["sql"]] == [
        "SELECT",
        "DELETE",
        "UPDATE",
    ]
    assert ObservedCircuit.objects.get(near="host-cust1.2").sides["near"]["rewrite"] == 0


def test_only_the_noc_reads_found_lines_in_the_api(show: Show, nora: User, alice: User) -> None:
    show(
        rhino=[half("rhino", "hippo", key, 299 + key) for key in (1, 2, 3)],
        hippo=[half("hippo", "rhino", 1, 300), half("hippo", "zebra", 9, 301)],
    )
    first = client(nora).get("/api/v1/found-lines?limit=2").json()
    then = client(nora).get(first["next"]).json()
    found = [*first["results"], *then["results"]]
    assert [(line["key"], line["standing"]) for line in found] == [
        (1, "complete"),
        (2, "one_sided"),
        (3, "one_sided"),
        (9, "one_sided"),
    ]
    assert found[0]["a_end"] == {
        "router": "rhino",
        "interface": "host-cust1.300",
        "port": "host-cust1",
        "tag": "",
        "tagging": "dot1q",
        "outer_vlan": 300,
        "inner_vlan": None,
        "exact_match": True,
        "link_up": True,
        "policed": False,
        "ip_mtu": None,
    }
    assert found[1]["odd"] == [
        {
            "code": "no_far_end",
            "sentence": "rhino has a tunnel to 10.255.0.2, and no router reports the other end of it.",
        }
    ]
    assert [
        line["key"] for line in client(nora).get("/api/v1/found-lines?router=hippo").json()["results"]
    ] == [1, 9]
    assert [line["key"] for line in client(nora).get("/api/v1/found-lines?key=2").json()["results"]] == [2]
    assert client(alice).get("/api/v1/found-lines").status_code == 403


def test_noc_page_shows_inconsistencies(show: Show, nora: User, alice: User) -> None:
    page = "/noc/found-lines/"
    assert "No router reports lines of others" in text(signed_in(nora).get(page))
    show(
        rhino=[
            half("rhino", "hippo", 1, 300),
            circuit(attachment("host-cust2"), tunnel("rhino", "zebra", 4)),
        ],
        hippo=[circuit(attachment("host-cust1", 300), tunnel("hippo", "rhino", 1), back=False)],
    )
    shown = text(signed_in(nora).get(page))
    assert "rhino:host-cust1.300 VLAN 300 hippo:host-cust1.300 VLAN 300 VXLAN over IPv4 VNI 1" in shown
    assert "On hippo, frames that arrive on vxlan_tunnel1 are not forwarded" in shown
    assert "rhino:host-cust2 whole port" in shown
    assert "host-cust2" not in text(signed_in(nora).get(page, {"router": "hippo"}))
    assert signed_in(alice).get(page).status_code == 403


def test_every_inconsistency_has_a_sentence() -> None:
    facts = {"remote": "10.255.0.2", "key": 7, "interface": "x", "missing_from": "y", "a": 1500, "z": 9000}
    facts |= {"table": 10, "wanted": 0}
    sentences = {Odd(code, "rhino", facts).sentence for code in Oddity}
    assert len(sentences) == len(Oddity)
    assert all("rhino" in sentence for sentence in sentences)


def test_more_interfaces_than_postgresql_parameters_can_be_searched(show: Show) -> None:
    """A long vppcfg file may name so many interfaces."""
    show(rhino=[half("rhino", "hippo", 7, 300)], hippo=[half("hippo", "rhino", 7, 300)])
    interfaces = {("hippo", f"host-cust1.{number}") for number in range(40_000)}
    (line,) = found_lines(circuits_at(found_circuits(), interfaces))
    assert line.key == 7
