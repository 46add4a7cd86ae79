"""The NOC selects the interface of a port or a link from the router's report, with and without scripts."""

import re
from typing import Any

import pytest

from portal.accounts.models import Customer, User
from portal.inventory.models import BackboneLink, ObservedInterface, ObservedRouter, Port
from tests.integration.isp import GBIT, Isp
from tests.integration.web_pages.browser import signed_in, text, version_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def seen(isp: Isp) -> None:
    """Add to rhino's report a fast free interface, one without link, and a loopback."""
    rhino = isp.routers["rhino"]
    facts = {"router": rhino, "admin_up": True, "link_up": True, "ip_mtu": 9000}
    ObservedInterface.objects.create(name="GigabitEthernet10", speed_bps=25 * GBIT, **facts)
    ObservedInterface.objects.create(name="GigabitEthernet2", speed_bps=None, **facts | {"link_up": False})
    ObservedInterface.objects.create(name="loop0", **facts)


def offered(answer: Any) -> list[str]:
    return re.findall(r'name="pick_\w+"\s+value="([^"]+)"', answer.content.decode())


def test_router_name_offers_its_reported_interfaces(isp: Isp, nora: User, seen: None) -> None:
    answer = signed_in(nora).get("/noc/interfaces/?field=interface&of=router&router=rhino")
    shown = text(answer)
    assert offered(answer) == ["GigabitEthernet2", "GigabitEthernet10"]
    assert "GigabitEthernet2 link down · MTU 9000" in shown
    assert "GigabitEthernet10 link up · 25 Gbit/s · MTU 9000" in shown
    assert "host-cust1 link up port of Alpine Dairy" in shown
    assert "bb-next link up link rhino:bb-next — hippo:bb-prev" in shown
    assert "loop0" not in shown


def test_vlan_sub_interface_is_offered_for_a_link_with_its_port(isp: Isp, nora: User, seen: None) -> None:
    ObservedInterface.objects.create(
        router=isp.routers["rhino"],
        name="GigabitEthernet10.100",
        parent="GigabitEthernet10",
        admin_up=True,
        link_up=True,
        ip_mtu=1600,
    )
    answer = signed_in(nora).get("/noc/interfaces/?field=a_interface&of=a_router&a_router=rhino")
    assert "GigabitEthernet10.100" in offered(answer)
    assert "GigabitEthernet10.100 VLAN of GigabitEthernet10 · link up · MTU 1600" in text(answer)


def test_router_without_free_interfaces_says_so(isp: Isp, nora: User, seen: None) -> None:
    ObservedInterface.objects.filter(name__startswith="Gigabit").delete()
    shown = text(signed_in(nora).get("/noc/interfaces/?field=interface&of=router&router=rhino"))
    assert "rhino reports no free interface: all of these are in use." in shown
    assert "free ones first" not in shown


def test_buttons_list_and_select_interfaces_without_scripts(
    isp: Isp, dairy: Customer, nora: User, seen: None
) -> None:
    noc = signed_in(nora)
    written = {"router": "rhino", "customer": "Alpine Dairy", "kind": "enni", "description": "to Bern"}
    shown = noc.post("/noc/ports/add/", {**written, "show": "interface"})
    assert shown.status_code == 200
    assert offered(shown) == ["GigabitEthernet2", "GigabitEthernet10"]
    assert "This field is required" not in text(shown)
    taken = noc.post("/noc/ports/add/", {**written, "pick_interface": "GigabitEthernet10"})
    page = taken.content.decode()
    # With the reported speed and all other input.
    for name, value in {**written, "interface": "GigabitEthernet10", "speed_bps": "25000"}.items():
        assert re.search(rf'name="{name}"[^>]*value="{value}"|value="{value}" selected', page), name
    assert not Port.objects.filter(interface="GigabitEthernet10").exists()


def test_typed_speed_is_kept(isp: Isp, nora: User, seen: None) -> None:
    sent = {"router": "rhino", "speed_bps": "1000", "pick_interface": "GigabitEthernet10"}
    page = signed_in(nora).post("/noc/ports/add/", sent).content.decode()
    assert re.search(r'name="speed_bps" value="1000"', page)


def test_both_sides_of_a_link_have_separate_choices(isp: Isp, nora: User, seen: None) -> None:
    sent = {"a_router": "rhino", "z_router": "hippo", "ipv4": "on", "pick_a_interface": "GigabitEthernet10"}
    page = signed_in(nora).post("/noc/links/add/", sent).content.decode()
    assert re.search(r'name="a_interface" value="GigabitEthernet10"', page)
    assert re.search(r'name="a_ip_mtu" value="9000"', page)
    assert re.search(r'name="z_interface"(?![^>]*value=)', page)
    # An unticked box stays unticked.
    assert re.search(r'name="ipv4"[^>]*checked', page)
    assert not re.search(r'name="ipv6"[^>]*checked', page)


def test_choice_during_a_change_keeps_the_version_of_the_form(isp: Isp, nora: User, seen: None) -> None:
    noc, link = signed_in(nora), isp.links["rhino-hippo"]
    address = f"/noc/links/{link.pk}/change/"
    version = version_in(noc.get(address))
    BackboneLink.objects.filter(pk=link.pk).update(a_metric=77)
    sent = {
        "a_router": "rhino",
        "z_router": "hippo",
        "version": version,
        "pick_a_interface": "GigabitEthernet2",
    }
    picked = noc.post(address, sent)
    assert version_in(picked) == version
    assert "GigabitEthernet2" in picked.content.decode()


@pytest.mark.parametrize(
    ("router", "said"),
    [
        ("zebra", "zebra has no agent that reports its interfaces."),
        ("hippo", "hippo has not reported its interfaces yet."),
    ],
)
def test_interface_of_a_router_without_reports_is_typed(isp: Isp, nora: User, router: str, said: str) -> None:
    ObservedInterface.objects.filter(router=isp.routers["hippo"]).delete()
    assert said in text(signed_in(nora).get(f"/noc/interfaces/?field=interface&of=router&router={router}"))


@pytest.mark.parametrize("router", ["", "nobody", "\0", "9" * 30])
def test_unknown_router_offers_nothing(isp: Isp, nora: User, router: str) -> None:
    answer = signed_in(nora).get("/noc/interfaces/", {"field": "interface", "of": "router", "router": router})
    assert answer.status_code == 200
    assert offered(answer) == []


def test_unreported_interface_name_is_accepted_with_a_warning(isp: Isp, nora: User) -> None:
    ObservedRouter.objects.filter(router=isp.routers["rhino"]).update(encapsulations=["l2xc"])
    noc = signed_in(nora)
    sent = {
        f"{side}_{name}": value
        for side, router, interface in (("a", "rhino", "odd1"), ("z", "hippo", "odd2"))
        for name, value in (("router", router), ("interface", interface), ("metric", "10"))
    }
    added = noc.post("/noc/links/add/", {**sent, "ipv4": "on"}, follow=True)
    assert "rhino reports no interface odd1. The link carries no path until it does." in text(added)


@pytest.mark.parametrize("query", ["", "?field=interface", "?field=a%20b&of=router", "?field=%3Cb%3E&of=x"])
def test_only_interface_fields_have_a_list(nora: User, query: str) -> None:
    assert signed_in(nora).get(f"/noc/interfaces/{query}").status_code == 404


def test_only_the_noc_lists_interfaces(isp: Isp, ada: User) -> None:
    assert signed_in(ada).get("/noc/interfaces/?field=interface&of=router&router=rhino").status_code == 403
