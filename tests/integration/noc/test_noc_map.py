"""The map: its tables contain everything that it draws, and it shows large networks in parts."""

import itertools
import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import User
from portal.core import clock
from portal.inventory.models import BackboneLink, ObservedLoad, ObservedRouter, Router, Site
from portal.underlay.current_topology import SILENT_AFTER
from portal.vll import failure_impact
from portal.vll import link_loads_and_mtus as loads
from portal.vll.link_loads_and_mtus import LinkLoad, link_loads
from portal.vll.models import TunnelPath, Vll
from portal.vll.operations.paths import tunnel_paths_keep
from portal.web.noc.map import network_map
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end, order
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import ask_again, part_of, signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def empty_load_cache() -> None:
    cache.delete("web:link-loads")


def test_lines_are_summed_on_the_links_of_their_primary_paths(isp: Isp, alice: User) -> None:
    for vlan, cir in ((100, GBIT), (101, 2 * GBIT)):
        ends = {
            "a_end": end(isp, "rhino:host-cust1", outer=vlan),
            "z_end": end(isp, "hippo:host-cust1", outer=vlan),
        }
        order(isp, alice, cir_bps=cir, **ends)
    assert link_loads(now=clock.now()) == {isp.links["rhino-hippo"].pk: LinkLoad(2, 3 * GBIT)}


def test_too_many_router_pairs_are_not_summed_at_all(
    isp: Isp, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    order(isp, alice)
    monkeypatch.setattr(loads, "MAX_PAIRS", 0)
    assert link_loads(now=clock.now()) is None


def test_drawing_and_tables_agree(isp: Isp, alice: User, nora: User) -> None:
    activate(order(isp, alice).vll)
    BackboneLink.objects.filter(pk=isp.links["panda-otter"].pk).update(z_ip_mtu=1500)
    ObservedRouter.objects.filter(router=isp.routers["hippo"]).delete()
    page = signed_in(nora).get("/noc/map/")
    drawing, tables = halves(page)
    for router in isp.routers:
        assert f">{router}</text>" in drawing
        assert f">{router}</a>" in tables
    shown = text(page)
    assert "hippo Zürich silent" in shown
    assert "zebra Zürich transit only" in shown
    assert "rhino:bb-next — hippo:bb-prev MTU not known not known – – not measured 1 1 Gbit/s" in shown
    assert "panda:bb-next — otter:bb-prev MTUs conflict 1500 – – not measured 0 0 bit/s" in shown
    labels = re.findall(r">(MTU [^<]*|[^<]*bit/s sold|not measured)</text>", drawing)
    # Two links have the most common MTU, which one sentence below the map gives.
    assert sorted(labels) == ["1 Gbit/s sold", "MTU 1500", "MTU ?", "MTU ?", *["not measured"] * 5]
    assert "Links have an IP MTU of 9000 unless another value is written next to them." in shown


def test_map_and_order_use_the_same_mtu(isp: Isp, nora: User) -> None:
    silent = ObservedRouter.objects.filter(router=isp.routers["hippo"])
    silent.update(reported_at=clock.now() - SILENT_AFTER - timedelta(seconds=1))
    shown = text(signed_in(nora).get("/noc/map/"))
    assert "rhino:bb-next — hippo:bb-prev MTU not known not known" in shown
    silent.update(reported_at=clock.now())
    shown = text(signed_in(nora).get("/noc/map/"))
    assert "rhino:bb-next — hippo:bb-prev in service 9000" in shown


def test_large_network_is_shown_in_part_and_the_page_says_so(
    isp: Isp, nora: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.web.noc.map.network_map.LINKS_SHOWN", 2)
    shown = text(signed_in(nora).get("/noc/map/"))
    assert "These are the first 2 links." in shown
    around = text(signed_in(nora).get("/noc/map/?q=zebra"))
    assert "hippo:bb-next — zebra:bb-prev" in around
    assert "rhino:bb-next — hippo:bb-prev" not in around
    assert "These are the first" not in around


def test_thousand_routers_take_no_more_statements_than_five(isp: Isp, nora: User) -> None:
    browser = signed_in(nora)

    def statements() -> int:
        cache.delete("web:link-loads")
        with CaptureQueriesContext(connection) as captured:
            assert browser.get("/noc/map/").status_code == 200
        return len(captured)

    statements()
    few = statements()
    site = isp.routers["rhino"].site
    names = [f"far-{number:03}" for number in range(1000)]
    made = Router.objects.bulk_create(Router(name=name, site=site) for name in names)
    BackboneLink.objects.bulk_create(
        BackboneLink(a_router=a, a_interface="bb-next", z_router=z, z_interface="bb-prev", a_ip_mtu=9000)
        for a, z in itertools.pairwise(made)
    )
    statements()
    assert statements() == few


def test_empty_map_links_to_the_form(nora: User) -> None:
    assert "/noc/links/add/" in signed_in(nora).get("/noc/map/").content.decode()


def test_only_the_noc_reads_the_map(alice: User) -> None:
    assert signed_in(alice).get("/noc/map/").status_code == 403


def test_nearly_full_router_is_highlighted(isp: Isp, nora: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_map, "NEARLY_FULL", 0.0)
    drawing, _ = halves(signed_in(nora).get("/noc/map/"))
    assert drawing.count("ll-draw-box ll-draw-warning") == 2


def store_load(
    isp: Isp, side: str, *, rx_bps: int, tx_bps: int, speed_bps: int | None, age_s: int = 0
) -> None:
    """Store the agent's counts at that side of rhino-hippo."""
    at = clock.now() - timedelta(seconds=age_s)
    ObservedLoad.objects.create(
        link=isp.links["rhino-hippo"], side=side, at=at, rx_bps=rx_bps, tx_bps=tx_bps, speed_bps=speed_bps
    )


def halves(page: Any) -> tuple[str, str]:
    """Return the drawing, and the tables below it."""
    _before, drawing = page.content.decode().split('<div id="map-drawing"')
    drawing, tables = drawing.split("</svg>", 1)
    return drawing, tables


def on_the_map(user: User) -> tuple[list[str], str]:
    """Return the texts with an arrow on the drawing's links, and the tables as text."""
    page = signed_in(user).get("/noc/map/")
    return sorted(re.findall(r">[→←↓↑] ([^<]*)</text>", halves(page)[0])), text(page)


def test_link_load_comes_from_the_counts_of_both_senders(isp: Isp, nora: User) -> None:
    store_load(isp, "a", rx_bps=1, tx_bps=3 * GBIT, speed_bps=10 * GBIT)
    store_load(isp, "z", rx_bps=2, tx_bps=GBIT, speed_bps=100 * GBIT)
    drawn, tables = on_the_map(nora)
    assert drawn == ["10 %", "30 %"]
    assert (
        "rhino:bb-next — hippo:bb-prev in service 9000 – – 3 Gbit/s / 1 Gbit/s 30 % of 10 Gbit/s 0" in tables
    )


def test_side_without_an_agent_is_counted_by_the_other(isp: Isp, nora: User) -> None:
    store_load(isp, "z", rx_bps=2_004_999, tx_bps=5_140_809, speed_bps=None)
    drawn, tables = on_the_map(nora)
    assert drawn == ["2 Mbit/s", "5.14 Mbit/s"]
    assert "in service 9000 – – 2 Mbit/s / 5.14 Mbit/s 0" in tables


def test_old_counts_are_not_shown(isp: Isp, nora: User) -> None:
    store_load(isp, "a", rx_bps=1, tx_bps=3 * GBIT, speed_bps=10 * GBIT, age_s=60)
    drawn, tables = on_the_map(nora)
    assert drawn == []
    assert "in service 9000 – – not measured 0" in tables


def test_nearly_full_link_is_marked(isp: Isp, nora: User) -> None:
    store_load(isp, "a", rx_bps=8 * GBIT, tx_bps=1, speed_bps=10 * GBIT)
    store_load(isp, "z", rx_bps=1, tx_bps=1, speed_bps=10 * GBIT)
    assert "nearly full" not in on_the_map(nora)[1]
    ObservedLoad.objects.filter(side="z").update(tx_bps=8 * GBIT)
    assert "rhino:bb-next — hippo:bb-prev nearly full 9000" in on_the_map(nora)[1]


def test_router_without_links_is_shown_unless_the_map_is_filtered(isp: Isp, nora: User) -> None:
    site = isp.routers["rhino"].site
    Router.objects.create(name="newcomer", site=site, loopback4="10.255.0.99")
    Router.objects.create(name="forgotten", site=site, loopback4="10.255.0.98", retired_at=clock.now())
    shown = signed_in(nora).get("/noc/map/").content.decode()
    assert "newcomer</text>" in shown
    assert "newcomer" in text(signed_in(nora).get("/noc/map/"))
    assert "forgotten" not in shown
    assert "newcomer" not in text(signed_in(nora).get("/noc/map/", {"q": "rhino"}))


def test_page_of_a_router_without_reports_has_no_empty_values(isp: Isp, nora: User) -> None:
    newcomer = Router.objects.create(
        name="newcomer", site=isp.routers["rhino"].site, agent_url="https://newcomer.example:8443"
    )
    assert "Generation wanted, stored, applied 0 , – , –" in text(
        signed_in(nora).get(f"/noc/routers/{newcomer.pk}/")
    ).replace("0,", "0 ,").replace("–,", "– ,")


def test_link_load_is_shown_by_more_than_colour(isp: Isp, nora: User) -> None:
    store_load(isp, "a", rx_bps=1, tx_bps=9 * GBIT, speed_bps=10 * GBIT)
    store_load(isp, "z", rx_bps=1, tx_bps=5 * GBIT, speed_bps=10 * GBIT)
    drawing, _ = halves(signed_in(nora).get("/noc/map/"))
    levels = re.findall(r'class="ll-draw-use ll-use-(\w+)"', drawing)
    assert sorted(levels) == ["busy", "full", *["unmeasured"] * 4]


def test_map_is_geographic_when_all_sites_have_coordinates(isp: Isp, nora: User) -> None:
    assert "ll-draw-site" not in signed_in(nora).get("/noc/map/").content.decode()
    Site.objects.update(latitude="47.3769", longitude="8.5417")
    assert 'll-draw-site" x=' in signed_in(nora).get("/noc/map/").content.decode()


def test_site_without_coordinates_does_not_move_the_others(isp: Isp, nora: User) -> None:
    Site.objects.update(latitude="47.3769", longitude="8.5417")
    elsewhere = Site.objects.create(name="Nowhere yet")
    Router.objects.filter(name="hippo").update(site=elsewhere)
    response = signed_in(nora).get("/noc/map/")
    page = response.content.decode()
    assert page.count('ll-draw-site"') >= 2
    assert 'll-draw-unlocated"' in page
    assert f'href="/noc/sites/{elsewhere.pk}/change/">Nowhere yet</a>' in page
    assert "Sites without coordinates are drawn in a box below the map: Nowhere yet" in text(response)


def test_failed_link_names_the_lines_that_go_down(isp: Isp, alice: User, nora: User) -> None:
    in_service(order(isp, alice, description="Cheese").vll)
    isolate(isp, "rhino-hippo")
    shown = text(signed_in(nora).get("/noc/map/", {"link": isp.links["rhino-hippo"].pk}))
    assert "If rhino:bb-next — hippo:bb-prev fails" in shown
    assert "Down 1 line No path is left between their routers. Cheese Alpine Dairy" in shown


def test_failed_link_names_lines_that_no_longer_fit_and_those_that_do(
    isp: Isp, alice: User, nora: User
) -> None:
    in_service(order(isp, alice, description="Wide", svc_mtu=8000).vll)
    ends = {"a_end": end(isp, "rhino:host-cust1", outer=7), "z_end": end(isp, "hippo:host-cust1", outer=7)}
    in_service(order(isp, alice, description="Slim", **ends).vll)
    BackboneLink.objects.filter(pk=isp.links["zebra-panda"].pk).update(a_ip_mtu=2000, z_ip_mtu=2000)
    shown = text(signed_in(nora).get("/noc/map/", {"link": isp.links["rhino-hippo"].pk}))
    assert "Too wide 1 line They stay up," in shown
    assert "Wide Alpine Dairy · needs an IP MTU of 8050, 2000 is left" in shown
    assert "Degraded 1 line They keep a path that fits their largest frames" in shown
    assert "Down" not in shown


def test_failed_router_affects_the_lines_that_end_on_it(isp: Isp, alice: User, nora: User) -> None:
    in_service(order(isp, alice, description="Cheese").vll)
    ends = {"a_end": end(isp, "rhino:host-cust1", outer=7), "z_end": end(isp, "rhino:host-cust2", outer=7)}
    in_service(order(isp, alice, description="Next door", **ends).vll)
    browser = signed_in(nora)
    assert "Down 2 lines" in text(browser.get("/noc/map/", {"router": isp.routers["rhino"].pk}))
    assert "Down 1 line " in text(browser.get("/noc/map/", {"router": isp.routers["hippo"].pk}))
    # The router is on the detour, which no line uses now.
    away = text(browser.get("/noc/map/", {"router": isp.routers["panda"].pk}))
    assert "No line in service would be affected" in away


def test_too_many_paths_are_not_followed_and_the_page_says_so(
    isp: Isp, alice: User, nora: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_service(order(isp, alice).vll)
    monkeypatch.setattr(failure_impact, "MAX_PATHS", 0)
    shown = text(signed_in(nora).get("/noc/map/", {"link": isp.links["rhino-hippo"].pk}))
    assert "There are too many paths in use to follow them one by one." in shown


def test_paths_with_lost_frames_come_first_and_a_selected_router_has_its_own(
    isp: Isp, nora: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for a, z, finding in (("rhino", "hippo", ""), ("rhino", "zebra", ""), ("panda", "otter", "lossy")):
        low, high = sorted(isp.routers[name].pk for name in (a, z))
        TunnelPath.objects.create(
            a_router_id=low, z_router_id=high, family=4, round_trips_due_at=clock.now(), finding=finding
        )
    monkeypatch.setattr(network_map, "PATHS_SHOWN", 2)
    browser = signed_in(nora)
    first = browser.get("/noc/map/")
    assert paths_shown(first) == [{"panda", "otter"}, {"rhino", "hippo"}]
    assert "These are the first 2; those on which frames were lost come first." in text(first)
    of_zebra = browser.get("/noc/map/", {"router": isp.routers["zebra"].pk})
    assert paths_shown(of_zebra) == [{"rhino", "zebra"}]
    assert "These are the first" not in text(of_zebra)


def paths_shown(page: Any) -> list[set[str]]:
    table = page.content.decode().split('id="paths-title"')[1].split("</table>")[0]
    return [set(row.split(" – ")) for row in re.findall(r'<th scope="row">(.*?)</th>', table)]


def test_path_of_a_line_is_shown_and_linked_from_its_page(isp: Isp, alice: User, nora: User) -> None:
    vll = order(isp, alice, description="Cheese").vll
    browser = signed_in(nora)
    assert f'href="/noc/map/?line={vll.pk}"' in browser.get(f"/vlls/{vll.pk}/").content.decode()
    assert "/noc/map/" not in signed_in(alice).get(f"/vlls/{vll.pk}/").content.decode()
    page = browser.get("/noc/map/", {"line": vll.pk})
    drawing, _ = halves(page)
    assert "The path of Cheese" in text(page)
    assert drawing.count('"ll-draw-mark ll-draw-mark-path"') == 1
    assert drawing.count("ll-draw-mark-path-backup") == 4
    assert drawing.count(" ll-draw-end") == 2


def test_line_within_one_router_uses_no_link(isp: Isp, alice: User, nora: User) -> None:
    ends = {"a_end": end(isp, "rhino:host-cust1"), "z_end": end(isp, "rhino:host-cust2")}
    vll = order(isp, alice, **ends).vll
    assert "Both ends are on rhino" in text(signed_in(nora).get("/noc/map/", {"line": vll.pk}))


@pytest.mark.parametrize(
    "selection",
    [
        {"line": "nonsense"},
        {"line": str(uuid.uuid4())},
        {"link": "0"},
        {"link": "-1"},
        {"link": "9" * 30},
        {"link": "²"},
        {"router": "x\0"},
    ],
)
def test_unknown_selection_is_ignored_and_the_map_is_shown(
    isp: Isp, nora: User, selection: dict[str, str]
) -> None:
    page = signed_in(nora).get("/noc/map/", selection)
    assert page.status_code == 200
    assert "The object at this address does not exist" in text(page)
    assert "rhino</text>" in page.content.decode()


def test_selected_object_is_on_the_map_with_any_search(isp: Isp, nora: User) -> None:
    selection = {"q": "zebra", "router": isp.routers["rhino"].pk}
    drawing, _ = halves(signed_in(nora).get("/noc/map/", selection))
    assert "otter</text>" in drawing
    assert f"?q=zebra&amp;link={isp.links['rhino-hippo'].pk}#map" in drawing


def test_unchanged_map_is_not_sent_again(isp: Isp, nora: User) -> None:
    browser = signed_in(nora)
    part = part_of(browser.get("/noc/map/", {"q": "rhino"}))
    assert (part["id"], part["url"]) == ("map-drawing", "/noc/map/?q=rhino")
    assert ask_again(browser, part).status_code == 204
    store_load(isp, "a", rx_bps=1, tx_bps=GBIT, speed_bps=10 * GBIT)
    new = ask_again(browser, part)
    assert new.status_code == 200
    assert '<div id="map-drawing"' in new.content.decode()
    assert "<html" not in new.content.decode()


def in_service(vll: Vll) -> None:
    activate(vll)
    tunnel_paths_keep(now=clock.now())


def isolate(isp: Isp, link: str) -> None:
    """Take every other link out of service."""
    BackboneLink.objects.exclude(pk=isp.links[link].pk).update(in_service=False)
