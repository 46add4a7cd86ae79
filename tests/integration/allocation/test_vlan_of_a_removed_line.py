"""A VLAN that the customer's own removed line still has: whose it is, until when, and how to free it now."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.vll.errors import VlanCoolingOff
from portal.vll.line_spec import LineSpec
from portal.vll.models import Vll
from portal.vll.operations.line_removal import order_delete
from portal.vll.operations.reservations import reservation_make
from portal.vll.quote import quote
from tests.integration.api.test_api_v1 import body, client, post
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end, order
from tests.integration.router_answers import activate, answer
from tests.integration.web_pages.test_order_page import fields

RHINO, HIPPO = "rhino:host-cust1", "hippo:host-cust1"
pytestmark = pytest.mark.django_db


@pytest.fixture
def removed(vll: Vll, alice: User) -> Vll:
    """A line in its cooling-off: its traffic is stopped, and its VLANs are leased."""
    activate(vll)
    order_delete(user=alice, vll=vll, now=clock.now(), cooling_off=timedelta(days=7))
    activate(vll)
    vll.refresh_from_db()
    assert vll.decommission_at is not None
    return vll


def test_ordering_its_vlan_says_whose_it_is_until_when_and_how_to_free_it(
    isp: Isp, alice: User, removed: Vll
) -> None:
    answered = post(alice, body(isp))
    assert answered.status_code == 409
    document = answered.json()
    assert document["type"].endswith("#vlan-cooling-off")
    entry = document["errors"][0]
    assert (entry["field"], entry["code"]) == ("a_end.outer_vlan", "vlan-cooling-off")
    assert entry["facts"] == {
        "port": "rhino:host-cust1",
        "vlans": "100",
        "whole_port_taken": False,
        "line": str(removed.pk),
        "description": "ZRH-AMS",
        "until": str(removed.decommission_at),
        "free_now": f"DELETE /api/v1/vlls/{removed.pk}?cooling_off=0",
    }
    assert "“ZRH-AMS”" in document["detail"]
    assert f"until {removed.decommission_at:%Y-%m-%d %H:%M} UTC" in document["detail"]


def test_the_call_that_the_answer_names_frees_the_vlan(isp: Isp, alice: User, removed: Vll) -> None:
    entry = post(alice, body(isp)).json()["errors"][0]
    method, address = entry["facts"]["free_now"].split()
    assert client(alice).generic(method, address).status_code == 202
    under_way = post(alice, body(isp)).json()["errors"][0]
    assert (under_way["facts"]["until"], under_way["facts"]["free_now"]) == (None, None)
    assert "is just being removed" in under_way["detail"]
    removed.refresh_from_db()
    for side in "az":
        answer(removed, side, "removed")
    free = {"z_end": {"port": isp.ports["hippo:host-cust1"].pk, "tagging": "dot1q", "outer_vlan": 100}}
    assert post(alice, body(isp, **free)).status_code == 202


def test_a_preview_and_a_reservation_say_the_same(isp: Isp, alice: User, removed: Vll) -> None:
    request = LineSpec(
        a_end=end(isp, "rhino:host-cust1"),
        z_end=end(isp, "hippo:host-cust1", outer=200),
        svc_mtu=1500,
        cir_bps=GBIT,
        transport="auto",
    )
    found = quote(request, user=alice, now=clock.now())
    assert [type(each) for each in found.refusals] == [VlanCoolingOff]
    with pytest.raises(VlanCoolingOff):
        reservation_make(user=alice, a_end=request.a_end, z_end=request.z_end, cir_bps=GBIT, now=clock.now())


def test_the_page_has_a_button_to_the_lines_removal(isp: Isp, alice: User, removed: Vll) -> None:
    browser = Client()
    browser.force_login(alice)
    for address in ("/orders/new/", "/orders/new/check/"):
        page = browser.post(address, fields(isp)).content.decode()
        assert f'href="/vlls/{removed.pk}/remove/"' in page, address
        assert "Remove <bdi>ZRH-AMS</bdi> permanently" in page, address
    confirmation = browser.get(f"/vlls/{removed.pk}/remove/").content.decode()
    assert 'name="cooling_off" value="0"' in confirmation


def test_a_line_in_service_is_only_another_line(isp: Isp, alice: User, vll: Vll) -> None:
    activate(vll)
    entry = post(alice, body(isp)).json()["errors"][0]
    assert entry["code"] == "vlan-taken"
    assert set(entry["facts"]) == {"port", "vlans", "whole_port_taken"}


def test_nothing_is_said_of_another_customers_removed_line(
    isp: Isp, alice: User, bakery: Customer, removed: Vll
) -> None:
    """A port may still carry a line of the customer who had it before."""
    Vll.objects.filter(pk=removed.pk).update(customer=bakery, description="secret plans")
    answered = post(alice, body(isp))
    assert answered.json()["errors"][0]["code"] == "vlan-taken"
    text = answered.content.decode()
    for secret in (str(removed.pk), "secret plans", "Basel Bakery", f"{removed.decommission_at:%Y-%m-%d}"):
        assert secret not in text
    browser = Client()
    browser.force_login(alice)
    page = browser.post("/orders/new/", fields(isp)).content.decode()
    assert "secret plans" not in page
    assert str(removed.pk) not in page


def test_a_whole_port_with_a_line_in_service_too_is_only_taken(isp: Isp, alice: User, removed: Vll) -> None:
    order(
        isp, alice, a_end=end(isp, "rhino:host-cust1", outer=7), z_end=end(isp, "hippo:host-cust1", outer=7)
    )
    whole: dict[str, Any] = {"port": isp.ports["rhino:host-cust1"].pk, "tagging": "untagged"}
    far = {"port": isp.ports["hippo:host-cust1"].pk, "tagging": "dot1q", "outer_vlan": 300}
    answered = post(alice, body(isp, a_end=whole, z_end=far))
    assert answered.json()["errors"][0]["code"] == "vlan-taken"
