"""The change page's preview of a change, while typing and without scripts."""

from typing import Any

import pytest

from portal.accounts.models import Customer, User
from portal.vll.models import Order, Vll
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import order
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


def test_a_possible_change_says_what_differs_and_how_it_would_go(
    isp: Isp, alice: User, nora: User, vll: Vll
) -> None:
    said = text(check(alice, isp, vll, cir="4", a_end__outer_vlan="any"))
    assert "Bandwidth (CIR) 1 Gbit/s 4 Gbit/s A end: Outer VLAN 100 any" in said
    assert "This change is possible." in said
    assert "VXLAN" not in said
    assert "Path MTU 9000 bytes To spare 7450 bytes" in said
    assert "Then left on rhino:host-cust1 6 Gbit/s of 10 Gbit/s" in said
    assert Order.objects.count() == 1
    the_nocs = text(check(nora, isp, vll, cir="4", a_end__outer_vlan="any"))
    assert "VXLAN over IPv4 ( as now)" in the_nocs.replace("(as", "( as")
    assert "IP MTU needed 1550 bytes" in the_nocs


def test_every_reason_against_it_is_listed(isp: Isp, alice: User, vll: Vll) -> None:
    said = text(check(alice, isp, vll, cir="11", svc_mtu="9000"))
    assert "This cannot be ordered as it is." in said
    assert "Missing 46 bytes" in said
    assert "Left on" not in said


def test_the_form_as_it_came_changes_nothing(isp: Isp, alice: User, vll: Vll) -> None:
    said = text(check(alice, isp, vll))
    assert "No change yet" in said
    assert "possible" not in said


def test_a_form_that_was_opened_before_another_change_is_told_at_once(
    isp: Isp, alice: User, vll: Vll
) -> None:
    assert "This cannot be ordered as it is." in text(check(alice, isp, vll, cir="2", revision=77))


def test_a_change_that_will_be_held_says_so(isp: Isp, alice: User, dairy: Customer, vll: Vll) -> None:
    said = "The NOC approves more bandwidth of this size first"
    assert said not in text(check(alice, isp, vll, cir="2"))
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=GBIT)
    assert said in text(check(alice, isp, vll, cir="2"))
    assert said not in text(check(alice, isp, vll, cir="0.5"))


def test_half_a_form_is_told_what_is_missing(isp: Isp, alice: User, vll: Vll) -> None:
    assert "Still missing: Bandwidth" in text(check(alice, isp, vll, cir=""))


def test_the_page_asks_while_somebody_types(alice: User, vll: Vll) -> None:
    page = signed_in(alice).get(f"/vlls/{vll.pk}/change/").content.decode()
    assert f'hx-post="/vlls/{vll.pk}/change/check/"' in page


def test_without_scripts_a_button_looks_and_orders_nothing(isp: Isp, alice: User, vll: Vll) -> None:
    sent = changed(isp, vll, cir="4", description="Cheese run") | {"check": "1"}
    answer = signed_in(alice).post(f"/vlls/{vll.pk}/change/", sent)
    assert "This change is possible." in text(answer)
    assert 'value="Cheese run"' in answer.content.decode()
    answer = signed_in(alice).post("/orders/new/", fields(isp, a_end__outer_vlan="7") | {"check": "1"})
    assert "This line is possible." in text(answer)
    assert 'value="Milk run"' in answer.content.decode()
    assert Order.objects.count() == 1
