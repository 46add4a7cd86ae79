"""The preview on the page of a change, during typing and without scripts."""

from typing import Any

import pytest

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.inventory.models import Port
from portal.vll.models import Order, Vll
from portal.vll.operations.modify_line import order_modify
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end, order
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text
from tests.integration.web_pages.test_order_page import fields
from tests.integration.web_pages.test_vll_orders import changed

pytestmark = pytest.mark.django_db


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    placed = order(isp, alice, description="Milk run").vll
    activate(placed)
    return placed


def check(user: User, isp: Isp, vll: Vll, **changes: Any) -> Any:
    sent = changed(isp, vll, **changes)
    return signed_in(user).post(f"/vlls/{vll.pk}/change/check/", sent, headers={"hx-request": "true"})


def test_possible_change_shows_differences_and_path(isp: Isp, alice: User, nora: User, vll: Vll) -> None:
    shown = text(check(alice, isp, vll, cir="4", a_end__outer_vlan="any"))
    assert "Bandwidth (CIR) 1 Gbit/s 4 Gbit/s A end: Outer VLAN 100 any" in shown
    assert "This change is possible." in shown
    assert "VXLAN" not in shown
    assert "Path MTU 9000 bytes Spare 7450 bytes" in shown
    assert "Then left on rhino:host-cust1 6 Gbit/s of 10 Gbit/s" in shown
    assert Order.objects.count() == 1
    shown_to_noc = text(check(nora, isp, vll, cir="4", a_end__outer_vlan="any"))
    assert "VXLAN over IPv4 ( as now)" in shown_to_noc.replace("(as", "( as")
    assert "IP MTU needed 1550 bytes" in shown_to_noc


def test_every_reason_against_the_change_is_listed(isp: Isp, alice: User, vll: Vll) -> None:
    shown = text(check(alice, isp, vll, cir="11", svc_mtu="9000"))
    assert "This cannot be ordered as it is." in shown
    assert "Missing 46 bytes" in shown
    assert "Left on" not in shown


def test_unedited_form_changes_nothing(isp: Isp, alice: User, vll: Vll) -> None:
    shown = text(check(alice, isp, vll))
    assert "No change yet" in shown
    assert "possible" not in shown


def test_form_older_than_another_change_is_reported_immediately(isp: Isp, alice: User, vll: Vll) -> None:
    assert "This cannot be ordered as it is." in text(check(alice, isp, vll, cir="2", revision=77))


def test_change_that_needs_approval_is_announced(isp: Isp, alice: User, dairy: Customer, vll: Vll) -> None:
    sentence = "An increase of this size needs the NOC's approval"
    assert sentence not in text(check(alice, isp, vll, cir="2"))
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=GBIT)
    assert sentence in text(check(alice, isp, vll, cir="2"))
    assert sentence not in text(check(alice, isp, vll, cir="0.5"))


def test_incomplete_form_shows_missing_fields(isp: Isp, alice: User, vll: Vll) -> None:
    assert "Still missing: Bandwidth" in text(check(alice, isp, vll, cir=""))


def test_page_updates_the_preview_during_typing(alice: User, vll: Vll) -> None:
    page = signed_in(alice).get(f"/vlls/{vll.pk}/change/").content.decode()
    assert f'hx-post="/vlls/{vll.pk}/change/check/"' in page


def test_button_previews_without_scripts_and_orders_nothing(isp: Isp, alice: User, vll: Vll) -> None:
    sent = changed(isp, vll, cir="4", description="Cheese run") | {"check": "1"}
    response = signed_in(alice).post(f"/vlls/{vll.pk}/change/", sent)
    assert "This change is possible." in text(response)
    assert 'value="Cheese run"' in response.content.decode()
    response = signed_in(alice).post("/orders/new/", fields(isp, a_end__outer_vlan="7") | {"check": "1"})
    assert "This line is possible." in text(response)
    assert 'value="Milk run"' in response.content.decode()
    assert Order.objects.count() == 1


@pytest.fixture
def with_our_vlans(isp: Isp, alice: User) -> Vll:
    """Return a line with VLANs that the portal chose: 100 at both ends."""
    ends = {
        f"{side}_end": end(isp, f"{router}:host-cust1", outer="any")
        for side, router in (("a", "rhino"), ("z", "hippo"))
    }
    placed = order(isp, alice, description="Milk run", **ends).vll
    activate(placed)
    return placed


def test_vlan_chosen_by_the_portal_is_in_the_form_and_moves_with_the_end(
    isp: Isp, alice: User, with_our_vlans: Vll
) -> None:
    line, browser = with_our_vlans, signed_in(alice)
    page = browser.get(f"/vlls/{line.pk}/change/").content.decode()
    assert 'name="z_end-outer_vlan" value="100"' in page
    assert "No change yet" in text(check(alice, isp, line))
    moved = {"z_end__port": isp.ports["hippo:host-cust2"].pk}
    shown = text(check(alice, isp, line, **moved))
    assert "Z end: Port hippo:host-cust1 hippo:host-cust2" in shown
    assert "Outer VLAN 100" not in shown
    left_to_us = text(check(alice, isp, line, **moved, z_end__outer_vlan="any"))
    assert "Z end: Outer VLAN 100 any" in left_to_us
    browser.post(f"/vlls/{line.pk}/change/", changed(isp, line, **moved))
    assert [each.outer_vlan for each in line.ends.order_by("side")] == [100, 100]


def test_move_to_a_port_with_a_taken_vlan_selects_no_other_vlan_silently(
    isp: Isp, alice: User, with_our_vlans: Vll
) -> None:
    ends = {"a_end": end(isp, "rhino:host-cust2"), "z_end": end(isp, "hippo:host-cust2")}
    order(isp, alice, **ends)
    moved = {"z_end__port": isp.ports["hippo:host-cust2"].pk}
    shown = text(check(alice, isp, with_our_vlans, **moved))
    assert "VLAN 100 on hippo:host-cust2 is used by another line" in shown


def test_move_by_the_api_keeps_the_vlan_where_it_is_free(isp: Isp, alice: User, with_our_vlans: Vll) -> None:
    changes = {"z_end": {"port": isp.ports["hippo:host-cust2"].pk}}
    isp_vlans = {
        "a_end": end(isp, "rhino:host-cust2", outer=4000),
        "z_end": end(isp, "hippo:host-cust2", outer=4000),
    }
    order(isp, alice, **isp_vlans)
    order_modify(user=alice, vll=with_our_vlans, changes=changes, now=clock.now())
    assert with_our_vlans.ends.get(side="z").outer_vlan == 100


def test_line_can_only_move_to_ports_of_its_customer(
    isp: Isp, nora: User, bakery: Customer, vll: Vll
) -> None:
    Port.objects.filter(pk=isp.ports["hippo:host-cust2"].pk).update(customer=bakery)
    page = signed_in(nora).get(f"/vlls/{vll.pk}/change/")
    assert "hippo:host-cust1" in text(page)
    assert "hippo:host-cust2" not in text(page)
    for owner, offered in ((vll.customer_id, False), (bakery.pk, True)):
        query = {"z_end-search": "hippo", "owner": owner}
        found = text(signed_in(nora).get("/orders/new/ports/", query))
        assert ("hippo:host-cust2" in found) is offered
