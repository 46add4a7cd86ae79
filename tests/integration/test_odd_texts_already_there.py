"""Texts that nobody may write any more, but that are there, keep nobody from changing something else."""

import pytest

from portal.accounts.models import Customer, Invitation, User
from portal.core import clock
from portal.inventory.models import Port, Router, Site
from portal.notifications.webhook_operations import webhook_create
from portal.vll.models import Vll
from tests.integration.isp import GBIT, Isp
from tests.integration.noc.test_noc_two_at_once import opened
from tests.integration.orders import order
from tests.integration.router_answers import activate
from tests.integration.test_api_v1 import client
from tests.integration.web_pages.browser import save, signed_in, text
from tests.integration.web_pages.test_order_page import fields, submit
from tests.integration.web_pages.test_vll_orders import changed

pytestmark = pytest.mark.django_db
TABBED = "Milk\trun"
ODD = "Alpine\u200f Dairy"
REFUSED = "It contains invisible characters"


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


def test_a_line_with_one_can_have_another_bandwidth(isp: Isp, alice: User, vll: Vll) -> None:
    address, browser = f"/vlls/{vll.pk}/change/", signed_in(alice)
    sent = changed(isp, vll, cir="2", description=TABBED)
    assert "This change is possible." in text(browser.post(f"{address}check/", sent))
    assert browser.post(address, sent).status_code == 302
    vll.refresh_from_db()
    assert (vll.description, vll.cir_bps) == (TABBED, 2 * GBIT)


def test_what_is_written_anew_is_to_be_plain_all_the_same(isp: Isp, alice: User, vll: Vll) -> None:
    for description in (f"{TABBED}!", "\u202e"):
        refused = signed_in(alice).post(
            f"/vlls/{vll.pk}/change/", changed(isp, vll, cir="2", description=description)
        )
        assert (refused.status_code, REFUSED in text(refused)) == (422, True)


def test_a_port_of_a_customer_with_such_a_name_can_be_changed(
    isp: Isp, oddly_named: Customer, nora: User
) -> None:
    port, noc = isp.ports["rhino:host-cust1"], signed_in(nora)
    address = f"/noc/ports/{port.pk}/change/"
    sent = opened(noc, address) | {"speed_bps": "20000"}
    assert sent["customer"] == ODD
    assert noc.post(address, sent).status_code == 302
    port.refresh_from_db()
    assert (port.customer, port.speed_bps) == (oddly_named, 20 * GBIT)


def test_a_port_is_given_to_such_a_customer_at_such_a_site(
    isp: Isp, oddly_named: Customer, nora: User
) -> None:
    Site.objects.filter(pk=isp.ports["rhino:host-cust1"].router.site_id).update(name="Th\u200eun")
    noc, router = signed_in(nora), Router.objects.get(name="rhino")
    port = {"router": "rhino", "interface": "x1", "speed_bps": "1000", "kind": "uni", "max_frame": "9000"}
    assert noc.post("/noc/ports/add/", port | {"customer": ODD}).status_code == 302
    assert Port.objects.get(interface="x1").customer == oddly_named
    sent = opened(noc, f"/noc/routers/{router.pk}/change/")
    assert noc.post(f"/noc/routers/{router.pk}/change/", sent | {"cpu": "Xeon"}).status_code == 302


def test_such_a_customer_has_another_limit(oddly_named: Customer, nora: User) -> None:
    address, noc = f"/noc/customers/{oddly_named.pk}/change/", signed_in(nora)
    assert noc.post(address, opened(noc, address) | {"approve_up_to_bps": "50"}).status_code == 302
    oddly_named.refresh_from_db()
    assert (oddly_named.name, oddly_named.approve_up_to_bps) == (ODD, 50_000_000)


def test_a_webhook_with_one_has_another_address(ada: User, dairy: Customer) -> None:
    webhook, _ = webhook_create(
        user=ada, customer=dairy, url="https://a.example/in", description=TABBED, now=clock.now()
    )
    sent = {"url": "https://hooks.example.net/in", "description": TABBED}
    assert save(signed_in(ada), f"/webhooks/{webhook.pk}/change/", sent).status_code == 302
    webhook.refresh_from_db()
    assert (webhook.url, webhook.description) == (sent["url"], TABBED)


def test_ports_are_looked_for_by_any_name(isp: Isp, oddly_named: Customer, alice: User) -> None:
    assert submit(alice, fields(isp) | {"a_end-search": ODD}).status_code == 302


def test_the_api_finds_a_customer_by_any_name(isp: Isp, oddly_named: Customer, ada: User, nora: User) -> None:
    invited = {"customer": ODD, "email": "dora@dairy.example", "role": "viewer"}
    assert client(ada).post("/api/v1/invitations", invited, format="json").status_code == 201
    assert Invitation.objects.get().customer == oddly_named
    webhook = {"customer": ODD, "url": "https://hooks.example.net/in"}
    assert client(ada).post("/api/v1/webhooks", webhook, format="json").status_code == 201
    port = {"router": "rhino", "interface": "x1", "speed_bps": GBIT, "customer": ODD}
    assert client(nora).post("/api/v1/ports", port, format="json").status_code == 201


@pytest.mark.parametrize("name", ["a\0b", "\u200f"])
def test_a_name_that_nobody_has_is_refused_as_such(ada: User, name: str) -> None:
    for kind, besides in (
        ("invitations", {"email": "dora@dairy.example", "role": "viewer"}),
        ("webhooks", {"url": "https://hooks.example.net/in"}),
    ):
        answer = client(ada).post(f"/api/v1/{kind}", {"customer": name} | besides, format="json")
        (error,) = answer.json()["errors"]
        assert (answer.status_code, error["field"]) == (422, "customer")
