"""Every operation of the API, tried by a stranger with another tenant's ids: nothing is there for him.

Generated from the schema: a new operation is tried as soon as it exists.
"""

import uuid
from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.accounts.models import Customer
from portal.accounts.tokens import token_create
from portal.api.openapi.document import document
from portal.core import clock
from portal.notifications.webhooks import webhook_create, webhook_test
from portal.vll.operations import hold_make
from tests.integration.answers import activate
from tests.integration.isp import build_isp, member
from tests.integration.orders import end, order
from tests.integration.test_api_v1 import client

pytestmark = pytest.mark.django_db
METHODS = ("get", "post", "put", "patch", "delete")
# Owned by nobody: the network's own things, which the NOC keeps. A stranger may not tell more than the
# schema does: he sees them as any customer does, or is refused as such.
THE_NETWORKS = {"sites", "routers", "links", "customers", "vni-ranges", "event-types", "netbox"}


@pytest.fixture
def owned(db: None) -> dict[str, Any]:
    """Ids of things of Alice's, by the first part of their path. Say here how a new kind is made."""
    dairy = Customer.objects.create(name="Alpine Dairy", created_at=clock.now())
    alice = member("alice", dairy, "admin")
    isp = build_isp(owner=dairy)
    placed = order(isp, alice)
    activate(placed.vll)
    ends = [end(isp, f"{name}:host-cust2", outer=7) for name in ("rhino", "hippo")]
    held = hold_make(user=alice, a_end=ends[0], z_end=ends[1], cir_bps=1000, now=clock.now())
    token, _ = token_create(user=alice, name="hers", now=clock.now())
    url = "https://hooks.example.net/"
    webhook, _ = webhook_create(user=alice, customer=dairy, url=url, now=clock.now())
    return {
        "webhooks": webhook.pk,
        "webhook-deliveries": webhook_test(webhook=webhook, now=clock.now()).pk,
        "vlls": placed.vll_id,
        "orders": placed.pk,
        "jobs": placed.pk,
        "ports": isp.ports["rhino:host-cust1"].pk,
        "tokens": token.pk,
        "people": alice.pk,
        "holds": held.pk,
    }


@pytest.fixture
def stranger(db: None) -> APIClient:
    """Charlie, who is an admin, but of Basel Bakery."""
    bakery = Customer.objects.create(name="Basel Bakery", created_at=clock.now())
    return client(member("charlie", bakery, "admin"))


def operations(*, of_one: bool) -> list[Any]:
    return [
        pytest.param(method, path, item[method], id=f"{method.upper()} {path}")
        for path, item in document()["paths"].items()
        for method in METHODS
        if method in item and ("{" in path) == of_one
    ]


def area_of(path: str) -> str:
    return path.removeprefix("/api/v1/").partition("/")[0]


def told(api: APIClient, method: str, path: str, operation: Any, thing: Any) -> tuple[int, Any]:
    media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    url = path.replace("{id}", str(thing))
    answer = getattr(api, method)(url, media.get("example"), format="json", headers={"If-Match": "*"})
    document = answer.json() if answer.content else {}
    return answer.status_code, {name: value for name, value in document.items() if name != "request_id"}


@pytest.mark.parametrize(("method", "path", "operation"), operations(of_one=True))
def test_to_a_stranger_another_tenants_object_is_as_one_that_does_not_exist(
    owned: dict[str, Any], stranger: APIClient, method: str, path: str, operation: Any
) -> None:
    area = area_of(path)
    if area in THE_NETWORKS:
        pytest.skip("belongs to no tenant")
    assert area in owned, f"say in `owned` how one of {area} is made"
    hers, nobodys = owned[area], uuid.uuid4() if isinstance(owned[area], uuid.UUID) else 2**40
    status, said = told(stranger, method, path, operation, hers)
    # 403 to whoever may not do it to anything: that says nothing about this one.
    assert status == 404 or (status == 403 and method != "get")
    assert (status, said) == told(stranger, method, path, operation, nobodys)


@pytest.mark.parametrize(("method", "path", "operation"), operations(of_one=False))
def test_no_list_shows_a_stranger_anything_of_another_tenants(
    owned: dict[str, Any], stranger: APIClient, method: str, path: str, operation: Any
) -> None:
    if method != "get":
        pytest.skip("not a list")
    status, said = told(stranger, method, path, operation, None)
    if area_of(path) in THE_NETWORKS:
        assert status in (200, 403)
    else:
        mine = [row["name"] for row in said["results"] if row.get("name") == "test"]
        assert (status, len(said["results"])) == (200, len(mine))


def test_an_order_over_another_tenants_port_is_as_one_over_no_port(
    owned: dict[str, Any], stranger: APIClient
) -> None:
    operation = document()["paths"]["/api/v1/vlls"]["post"]
    body = operation["requestBody"]["content"]["application/json"]["example"]

    def over(port: int) -> tuple[int, str]:
        ends = {side: {"port": port, "tagging": "untagged"} for side in ("a_end", "z_end")}
        answer = stranger.post("/api/v1/vlls", {**body, **ends}, format="json")
        return answer.status_code, answer.json()["detail"].replace(str(port), "…")

    assert over(owned["ports"]) == over(2**40)
    assert over(owned["ports"])[0] == 422
