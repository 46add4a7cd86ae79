"""The map: what is drawn stands in the tables too, and large networks are shown in parts."""

import itertools
import re
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import User
from portal.core import clock
from portal.inventory.models import BackboneLink, ObservedLoad, ObservedRouter, Router
from portal.underlay.topology_cache import SILENT_AFTER
from portal.vll import booked_link_loads as loads
from portal.vll.booked_link_loads import LinkLoad, link_loads
from portal.web import network_map
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end, order
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_added_up_yet() -> None:
    cache.delete("web:link-loads")


def test_lines_are_added_up_on_the_links_that_they_use_while_nothing_has_failed(
    isp: Isp, alice: User
) -> None:
    for vlan, cir in ((100, GBIT), (101, 2 * GBIT)):
        ends = {
            "a_end": end(isp, "rhino:host-cust1", outer=vlan),
            "z_end": end(isp, "hippo:host-cust1", outer=vlan),
        }
        order(isp, alice, cir_bps=cir, **ends)
    assert link_loads(now=clock.now()) == {isp.links["rhino-hippo"].pk: LinkLoad(2, 3 * GBIT)}


def test_too_many_pairs_of_routers_are_not_added_up_rather_than_in_part(
    isp: Isp, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    order(isp, alice)
    monkeypatch.setattr(loads, "MAX_PAIRS", 0)
    assert link_loads(now=clock.now()) is None


def test_the_drawing_and_the_tables_say_the_same(isp: Isp, alice: User, nora: User) -> None:
    activate(order(isp, alice).vll)
    BackboneLink.objects.filter(pk=isp.links["panda-otter"].pk).update(z_ip_mtu=1500)
    ObservedRouter.objects.filter(router=isp.routers["hippo"]).delete()
    page = signed_in(nora).get("/noc/map/")
    drawing, tables = page.content.decode().split("</svg>")
    for router in isp.routers:
        assert f">{router}</text>" in drawing
        assert f">{router}</a>" in tables
    shown = text(page)
    assert "hippo Zürich silent" in shown
    assert "zebra Zürich transit only" in shown
    assert "rhino:bb-next — hippo:bb-prev MTU not known not known – – – 1 1 Gbit/s" in shown
    assert "panda:bb-next — otter:bb-prev MTUs contradict 1500 – – – 0 0 bit/s" in shown
    labels = re.findall(r">(MTU [^<]*|[^<]*bit/s sold)</text>", drawing)
    assert sorted(labels) == ["1 Gbit/s sold", "MTU 1500", "MTU 9000", "MTU 9000", "MTU ?", "MTU ?"]


def test_an_mtu_counts_on_the_map_as_it_does_for_an_order(isp: Isp, nora: User) -> None:
    silent = ObservedRouter.objects.filter(router=isp.routers["hippo"])
    silent.update(reported_at=clock.now() - SILENT_AFTER - timedelta(seconds=1))
    shown = text(signed_in(nora).get("/noc/map/"))
    assert "rhino:bb-next — hippo:bb-prev MTU not known not known" in shown
    silent.update(reported_at=clock.now())
    shown = text(signed_in(nora).get("/noc/map/"))
    assert "rhino:bb-next — hippo:bb-prev in service 9000" in shown


def test_of_a_large_network_a_part_is_shown_and_said_to_be_one(
    isp: Isp, nora: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.web.views.noc_map.LINKS_SHOWN", 2)
    shown = text(signed_in(nora).get("/noc/map/"))
    assert "These are the first 2 links." in shown
    around = text(signed_in(nora).get("/noc/map/?q=zebra"))
    assert "hippo:bb-next — zebra:bb-prev" in around
    assert "rhino:bb-next — hippo:bb-prev" not in around
    assert "These are the first" not in around


def test_a_thousand_routers_take_no_more_statements_than_five(isp: Isp, nora: User) -> None:
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


def test_nothing_to_draw_leads_to_the_form(nora: User) -> None:
    assert "/noc/links/add/" in signed_in(nora).get("/noc/map/").content.decode()


def test_the_map_is_the_nocs(alice: User) -> None:
    assert signed_in(alice).get("/noc/map/").status_code == 403


def test_a_nearly_full_router_stands_out(isp: Isp, nora: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_map, "NEARLY_FULL", 0.0)
    drawing = signed_in(nora).get("/noc/map/").content.decode().split("</svg>")[0]
    assert drawing.count("ll-draw-box ll-draw-warning") == 2


def seen(isp: Isp, side: str, *, rx_bps: int, tx_bps: int, speed_bps: int | None, age_s: int = 0) -> None:
    """The counts of the agent at that side of rhino-hippo."""
    at = clock.now() - timedelta(seconds=age_s)
    ObservedLoad.objects.create(
        link=isp.links["rhino-hippo"], side=side, at=at, rx_bps=rx_bps, tx_bps=tx_bps, speed_bps=speed_bps
    )


def on_the_map(user: User) -> tuple[list[str], str]:
    """The texts on the drawing's links, and the tables as text."""
    page = signed_in(user).get("/noc/map/")
    drawing, _ = page.content.decode().split("</svg>")
    return re.findall(r">([^<]* used)</text>", drawing), text(page)


def test_what_both_senders_count_is_what_a_link_carries(isp: Isp, nora: User) -> None:
    seen(isp, "a", rx_bps=1, tx_bps=3 * GBIT, speed_bps=10 * GBIT)
    seen(isp, "z", rx_bps=2, tx_bps=GBIT, speed_bps=100 * GBIT)
    drawn, tables = on_the_map(nora)
    assert drawn == ["30 % used"]
    assert (
        "rhino:bb-next — hippo:bb-prev in service 9000 – – 3 Gbit/s / 1 Gbit/s 30 % of 10 Gbit/s 0" in tables
    )


def test_a_side_without_an_agent_is_counted_by_the_other(isp: Isp, nora: User) -> None:
    seen(isp, "z", rx_bps=2_004_999, tx_bps=5_140_809, speed_bps=None)
    drawn, tables = on_the_map(nora)
    assert drawn == ["5.14 Mbit/s used"]
    assert "in service 9000 – – 2 Mbit/s / 5.14 Mbit/s 0" in tables


def test_what_was_counted_long_ago_is_not_shown(isp: Isp, nora: User) -> None:
    seen(isp, "a", rx_bps=1, tx_bps=3 * GBIT, speed_bps=10 * GBIT, age_s=60)
    drawn, tables = on_the_map(nora)
    assert drawn == []
    assert "in service 9000 – – – 0" in tables


def test_a_link_that_is_nearly_full_is_said_to_be_so(isp: Isp, nora: User) -> None:
    seen(isp, "a", rx_bps=8 * GBIT, tx_bps=1, speed_bps=10 * GBIT)
    seen(isp, "z", rx_bps=1, tx_bps=1, speed_bps=10 * GBIT)
    assert "nearly full" not in on_the_map(nora)[1]
    ObservedLoad.objects.filter(side="z").update(tx_bps=8 * GBIT)
    assert "rhino:bb-next — hippo:bb-prev nearly full 9000" in on_the_map(nora)[1]


def test_a_router_without_links_is_on_the_map_unless_something_is_looked_for(isp: Isp, nora: User) -> None:
    site = isp.routers["rhino"].site
    Router.objects.create(name="newcomer", site=site, loopback4="10.255.0.99")
    Router.objects.create(name="forgotten", site=site, loopback4="10.255.0.98", retired_at=clock.now())
    shown = signed_in(nora).get("/noc/map/").content.decode()
    assert "newcomer" in shown.split("</svg>")[0]
    assert "newcomer" in text(signed_in(nora).get("/noc/map/"))
    assert "forgotten" not in shown
    assert "newcomer" not in text(signed_in(nora).get("/noc/map/", {"q": "rhino"}))


def test_the_page_of_a_router_that_never_reported_has_no_holes(isp: Isp, nora: User) -> None:
    newcomer = Router.objects.create(
        name="newcomer", site=isp.routers["rhino"].site, agent_url="https://newcomer.example:8443"
    )
    assert "Generation wanted, held, applied 0 , – , –" in text(
        signed_in(nora).get(f"/noc/routers/{newcomer.pk}/")
    ).replace("0,", "0 ,").replace("–,", "– ,")
