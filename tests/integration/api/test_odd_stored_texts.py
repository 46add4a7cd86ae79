"""Stored texts that would be refused today do not prevent changes of other values."""

import pytest

from portal.accounts.models import Customer, Invitation, User
from portal.core import clock
from portal.inventory.models import Port, Router, Site
from portal.notifications.webhook_operations import webhook_create
from portal.vll.models import Vll
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import GBIT, Isp
from tests.integration.noc.test_noc_two_at_once import opened
from tests.integration.orders import order
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import save, signed_in, text
from tests.integration.web_pages.test_order_page import fields, submit
from tests.integration.web_pages.test_vll_orders import changed

pytestmark = pytest.mark.django_db
TABBED = "Milk\trun"
ODD = "Alpine\u200f Dairy"
REFUSED = "The text contains invisible characters"


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    placed = order(isp, alice, description="Milk run").vll
    activate(placed)
    Vll.objects.filter(pk=placed.pk).update(description=TABBED)
    return placed


@pytest.fixture
def oddly_named(dairy: Customer) -> Customer:
    Customer.objects.filter(pk=dairy.pk).update(name=ODD)
    dairy.refresh_from_db()
    return dairy


def test_bandwidth_of_a_line_with_an_odd_name_can_be_changed(isp: Isp, alice: User, vll: Vll) -> None:
    address, browser = f"/vlls/{vll.pk}/change/", signed_in(alice)
    sent = changed(isp, vll, cir="2", description=TABBED)
    assert "This change is possible." in text(browser.post(f"{address}check/", sent))
    assert browser.post(address, sent).status_code == 302
    vll.refresh_from_db()
    assert (vll.description, vll.cir_bps) == (TABBED, 2 * GBIT)


def test_new_text_must_be_plain(isp: Isp, alice: User, vll: Vll) -> None:
    for description in (f"{TABBED}!", "\u202e"):
        refused = signed_in(alice).post(
            f"/vlls/{vll.pk}/change/", changed(isp, vll, cir="2", description=description)
        )
        assert (refused.status_code, REFUSED in text(refused)) == (422, True)


def test_port_of_a_customer_with_an_odd_name_can_be_changed(
    isp: Isp, oddly_named: Customer, nora: User
) -> None:
    port, noc = isp.ports["rhino:host-cust1"], signed_in(nora)
    address = f"/noc/ports/{port.pk}/change/"
    sent = opened(noc, address) | {"speed_bps": "20000"}
    assert sent["customer"] == ODD
    assert noc.post(address, sent).status_code == 302
    port.refresh_from_db()
    assert (port.customer, port.speed_bps) == (oddly_named, 20 * GBIT)


def test_port_can_be_assigned_to_a_customer_and_a_site_with_odd_names(
    isp: Isp, oddly_named: Customer, nora: User
) -> None:
    Site.objects.filter(pk=isp.ports["rhino:host-cust1"].router.site_id).update(name="Th\u200eun")
    noc, router = signed_in(nora), Router.objects.get(name="rhino")
    port = {"router": "rhino", "interface": "x1", "speed_bps": "1000", "kind": "uni", "max_frame": "9000"}
    assert noc.post("/noc/ports/add/", port | {"customer": ODD}).status_code == 302
    assert Port.objects.get(interface="x1").customer == oddly_named
    sent = opened(noc, f"/noc/routers/{router.pk}/change/")
    assert noc.post(f"/noc/routers/{router.pk}/change/", sent | {"cpu": "Xeon"}).status_code == 302


def test_limit_of_a_customer_with_an_odd_name_can_be_changed(oddly_named: Customer, nora: User) -> None:
    address, noc = f"/noc/customers/{oddly_named.pk}/change/", signed_in(nora)
    assert noc.post(address, opened(noc, address) | {"approve_up_to_bps": "50"}).status_code == 302
    oddly_named.refresh_from_db()
    assert (oddly_named.name, oddly_named.approve_up_to_bps) == (ODD, 50_000_000)


def test_url_of_a_webhook_with_an_odd_description_can_be_changed(ada: User, dairy: Customer) -> None:
    webhook, _ = webhook_create(
        user=ada, customer=dairy, url="https://a.example/in", description=TABBED, now=clock.now()
    )
    sent = {"url": "https://hooks.example.net/in", "description": TABBED}
    assert save(signed_in(ada), f"/webhooks/{webhook.pk}/change/", sent).status_code == 302
    webhook.refresh_from_db()
    assert (webhook.url, webhook.description) == (sent["url"], TABBED)


def test_port_search_accepts_any_text(isp: Isp, oddly_named: Customer, alice: User) -> None:
    assert submit(alice, fields(isp) | {"a_end-search": ODD}).status_code == 302


def test_api_finds_a_customer_by_any_name(isp: Isp, oddly_named: Customer, ada: User, nora: User) -> None:
    invited = {"customer": ODD, "email": "dora@dairy.example", "role": "viewer"}
    assert client(ada).post("/api/v1/invitations", invited, format="json").status_code == 201
    assert Invitation.objects.get().customer == oddly_named
    webhook = {"customer": ODD, "url": "https://hooks.example.net/in"}
    assert client(ada).post("/api/v1/webhooks", webhook, format="json").status_code == 201
    port = {"router": "rhino", "interface": "x1", "speed_bps": GBIT, "customer": ODD}
    assert client(nora).post("/api/v1/ports", port, format="json").status_code == 201


@pytest.mark.parametrize("name", ["a\0b", "\u200f"])
def test_unknown_name_is_refused(ada: User, name: str) -> None:
    for kind, other_fields in (
        ("invitations", {"email": "dora@dairy.example", "role": "viewer"}),
        ("webhooks", {"url": "https://hooks.example.net/in"}),
    ):
        response = client(ada).post(f"/api/v1/{kind}", {"customer": name} | other_fields, format="json")
        (error,) = response.json()["errors"]
        assert (response.status_code, error["field"]) == (422, "customer")
