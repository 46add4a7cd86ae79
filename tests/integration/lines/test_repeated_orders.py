"""Repeated orders: the API names the first order, a page requires confirmation, and a setting requires a
key.
"""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connections
from django.test import Client

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.vll.errors import SimilarOrder
from portal.vll.line_spec import LineSpec
from portal.vll.models import Order, Vll
from portal.vll.operations.add_line import order_add
from tests.integration.api.test_api_v1 import body, client
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end
from tests.integration.web_pages.test_order_page import fields

RHINO, HIPPO = "rhino:host-cust1", "hippo:host-cust1"
pytestmark = pytest.mark.django_db


def wanted(isp: Isp, **changes: Any) -> dict[str, Any]:
    """Return a line with any VLANs, which are free in large numbers."""
    ends = {
        f"{side}_end": {"port": isp.ports[port].pk, "tagging": "dot1q", "outer_vlan": "any"}
        for side, port in (("a", RHINO), ("z", HIPPO))
    }
    return body(isp, **ends, cir_bps=GBIT // 10) | changes


def post(user: User, document: dict[str, Any], **headers: str) -> Any:
    return client(user).post("/api/v1/vlls", document, format="json", headers=headers)


def test_repeated_request_names_the_orders_of_the_last_minute(isp: Isp, alice: User, ada: User) -> None:
    first = post(alice, wanted(isp))
    assert (first.status_code, first.json()["similar_orders"]) == (202, [])
    # Another user of the customer, and another name.
    second = post(ada, wanted(isp, description="again"))
    assert second.status_code == 202
    assert second.json()["similar_orders"] == [first.json()["order"]["id"]]
    third = post(alice, wanted(isp))
    assert third.json()["similar_orders"] == [second.json()["order"]["id"], first.json()["order"]["id"]]


@pytest.mark.parametrize(
    "other",
    [
        {"cir_bps": GBIT // 5},
        {"svc_mtu": 1400},
        {"transport": "vxlan4"},
        {"eir_bps": GBIT},
        {"cbs_bytes": 200_000},
        {"a_end": {"tagging": "qinq", "outer_vlan": "any", "inner_vlan": 7}},
        {"z_end": {"tagging": "dot1q", "outer_vlan": 300}},
        {"a_end": {"tagging": "dot1q", "outer_vlan": "any", "exact_match": False}},
    ],
)
def test_order_that_differs_is_not_similar(isp: Isp, alice: User, other: dict[str, Any]) -> None:
    post(alice, wanted(isp))
    document = wanted(isp)
    for name, value in other.items():
        document[name] = {**document[name], **value} if isinstance(value, dict) else value
    response = post(alice, document)
    assert (response.status_code, response.json()["similar_orders"]) == (202, [])


def test_older_cancelled_and_foreign_orders_are_not_similar(isp: Isp, alice: User, bakery: Customer) -> None:
    first = post(alice, wanted(isp)).json()
    line = Vll.objects.filter(pk=first["vll"]["id"])
    at = line.get().created_at
    line.update(created_at=at - timedelta(seconds=61))
    assert post(alice, wanted(isp)).json()["similar_orders"] == []
    Vll.objects.update(created_at=at, lifecycle="terminated", wanted_present=False)
    assert post(alice, wanted(isp)).json()["similar_orders"] == []
    Vll.objects.update(customer=bakery)
    assert post(alice, wanted(isp)).json()["similar_orders"] == []


def test_page_requires_confirmation_of_a_second_line(isp: Isp, alice: User) -> None:
    browser = Client()
    browser.force_login(alice)
    sent = fields(isp, **{"a_end-outer_vlan": "any", "z_end-outer_vlan": "any"})
    assert browser.post("/orders/new/", sent).status_code == 302
    refused = browser.post("/orders/new/", sent)
    assert refused.status_code == 422
    page = refused.content.decode()
    assert "The same line was ordered within the last hour" in page
    assert re.search(r'<button[^>]*name="again"[^>]*>Order a second line</button>', page)
    assert Order.objects.count() == 1
    assert browser.post("/orders/new/", sent | {"again": "1"}).status_code == 302
    assert Order.objects.count() == 2


@pytest.mark.parametrize(
    ("ago", "confirmed"), [(timedelta(minutes=59), True), (timedelta(minutes=61), False)]
)
def test_page_requires_confirmation_for_an_hour(
    isp: Isp, alice: User, ago: timedelta, confirmed: bool
) -> None:
    """A user who goes back in the browser finds the form long after a program would repeat a request."""
    browser = Client()
    browser.force_login(alice)
    sent = fields(isp, **{"a_end-outer_vlan": "any", "z_end-outer_vlan": "any"})
    browser.post("/orders/new/", sent)
    Vll.objects.update(created_at=clock.now() - ago)
    assert browser.post("/orders/new/", sent).status_code == (422 if confirmed else 302)
    assert post(alice, wanted(isp)).json()["similar_orders"] == []


def test_page_requires_no_confirmation_of_another_line(isp: Isp, alice: User) -> None:
    browser = Client()
    browser.force_login(alice)
    sent = fields(isp, **{"a_end-outer_vlan": "any", "z_end-outer_vlan": "any"})
    browser.post("/orders/new/", sent)
    assert browser.post("/orders/new/", sent | {"svc_mtu": "1400"}).status_code == 302


@pytest.mark.django_db(transaction=True)
def test_one_of_several_simultaneous_equal_orders_succeeds(isp: Isp, alice: User) -> None:
    def press(_: int) -> str:
        try:
            order_add(
                user=alice,
                spec=LineSpec(
                    a_end=end(isp, RHINO, outer="any"),
                    z_end=end(isp, HIPPO, outer="any"),
                    svc_mtu=1500,
                    cir_bps=GBIT // 10,
                ),
                now=clock.now(),
                refuse_similar=True,
            )
        except SimilarOrder:
            return "refused"
        finally:
            connections.close_all()
        return "ordered"

    with ThreadPoolExecutor(4) as presses:
        assert sorted(presses.map(press, range(4))) == ["ordered"] + ["refused"] * 3


def test_tokens_need_a_key_if_the_deployment_requires_it(isp: Isp, alice: User, settings: Any) -> None:
    settings.LONGLINE_REQUIRE_IDEMPOTENCY_KEY = True
    refused = post(alice, wanted(isp))
    assert refused.status_code == 400
    assert refused.json()["type"].endswith("#idempotency-key-missing")
    assert not Order.objects.exists()
    keyed = {"Idempotency-Key": str(uuid4())}
    first = post(alice, wanted(isp), **keyed)
    again = post(alice, wanted(isp), **keyed)
    assert (first.status_code, again.json()) == (202, first.json())
    line = f"/api/v1/vlls/{first.json()['vll']['id']}"
    # Requests that can be repeated without harm need no key.
    described = client(alice).patch(line, {"description": "x"}, format="json", headers={"If-Match": "*"})
    assert described.status_code == 200
    assert client(alice).post("/api/v1/vlls/validate", wanted(isp), format="json").status_code == 200
