"""No operation of the API shows or changes another tenant's objects.

The tests come from the schema, so a new operation is tested as soon as it exists.
"""

import json
import re
import uuid
from typing import Any

import pytest
from django.db import connection
from rest_framework.test import APIClient

from portal.accounts.invitations import invite
from portal.accounts.models import Customer, User
from portal.accounts.tokens import token_create
from portal.allocation.models import ReservedVniRange
from portal.api.openapi.document import document
from portal.api.openapi.examples import example_of
from portal.core import clock
from portal.diagnosis.trouble_reports import trouble_report
from portal.notifications.webhook_operations import webhook_create, webhook_test
from portal.vll.models import ActivationTest, Vll
from portal.vll.operations.reservations import reservation_make
from tests.integration.api.test_api_v1 import client
from tests.integration.circuits import found_line
from tests.integration.database.test_tenants_stay_apart import everything
from tests.integration.imports.files import checked
from tests.integration.isp import build_isp, member
from tests.integration.orders import end, order
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db
METHODS = ("get", "post", "put", "patch", "delete")
# The inside of the network: for everybody except the NOC the response is the same, with or without objects.
THE_NOCS = {
    "imports",
    "routers",
    "links",
    "found-lines",
    "customers",
    "vni-ranges",
    "pools",
    "noc-staff",
}
# Owned by no tenant, and not secret.
FOR_ALL = {"sites"}
# The id of a test of Alice's line.
TEST = uuid.UUID(int=7)
# Part of every name of Alice's objects, and of nothing else.
SECRET = "undisclosed"


@pytest.fixture(scope="module")
def owned(module_rows: None) -> dict[str, Any]:
    """Return the ids of Alice's objects by the first part of their path. Add each new kind of object here."""
    dairy = Customer.objects.create(name=f"{SECRET} Dairy", created_at=clock.now())
    alice = member(f"alice-{SECRET}", dairy, "admin")
    # Port ids are large, because a sentence like "1 field cannot be accepted" must not contain one.
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval(pg_get_serial_sequence('inventory_port', 'id'), 70000)")
    isp = build_isp(owner=dairy)
    placed = order(isp, alice, description=f"{SECRET} line")
    activate(placed.vll)
    ActivationTest.objects.create(
        pk=TEST,
        vll=placed.vll,
        order=placed,
        revision=1,
        admin_status_after="admin-up",
        frame=placed.vll.frame,
        created_at=clock.now(),
    )
    ends = [end(isp, f"{name}:host-cust2", outer=7) for name in ("rhino", "hippo")]
    reservation = reservation_make(user=alice, a_end=ends[0], z_end=ends[1], cir_bps=1000, now=clock.now())
    token, _ = token_create(user=alice, name=f"{SECRET} token", now=clock.now())
    email = f"dora@{SECRET}.example"
    invitation = invite(by=alice, customer=dairy, email=email, role="viewer", now=clock.now())
    url = f"https://{SECRET}.example.net/"
    nora = User.objects.create_user("nora", noc_role="noc")
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
        "members": alice.memberships.get().pk,
        "invitations": invitation.pk,
        "holds": reservation.pk,
        "trouble-reports": trouble_report(user=alice, vll=placed.vll, note=SECRET, now=clock.now()).pk,
        "customers": dairy.pk,
        "routers": isp.routers["rhino"].pk,
        "sites": isp.routers["rhino"].site_id,
        "links": isp.links["rhino-hippo"].pk,
        "found-lines": found_line(isp),
        "imports": checked(nora, "sites", f"name\n{SECRET}\n").pk,
        "vni-ranges": ReservedVniRange.objects.create(first=1, last=9, reason=SECRET).pk,
    }


@pytest.fixture
def stranger(db: None) -> APIClient:
    """Return a client of Charlie, who is an admin of another customer, Basel Bakery."""
    bakery = Customer.objects.create(name="Basel Bakery", created_at=clock.now())
    api = client(member("charlie", bakery, "admin"))
    # The first request records that his token was used.
    api.get("/api/v1/tokens")
    return api


def operations(*, of_one: bool, methods: tuple[str, ...] = METHODS) -> list[Any]:
    return [
        pytest.param(method, path, item[method], id=f"{method.upper()} {path}")
        for path, item in document()["paths"].items()
        for method in methods
        if method in item and ("{" in path) == of_one
    ]


def area_of(path: str) -> str:
    return path.removeprefix("/api/v1/").partition("/")[0]


def respond(api: APIClient, method: str, path: str, operation: Any, thing: Any) -> tuple[int, Any]:
    url = path.replace("{id}", str(thing)).replace("{test}", str(TEST))
    answer = getattr(api, method)(url, example(operation), format="json", headers={"If-Match": "*"})
    document = answer.json() if answer.content else {}
    return answer.status_code, {name: value for name, value in document.items() if name != "request_id"}


def example(operation: Any) -> Any:
    """Return a body with all fields of the schema, even where no sensible request has all of them."""
    media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return example_of(media["schema"], document()["components"]["schemas"]) if media else None


@pytest.mark.parametrize(("method", "path", "operation"), operations(of_one=True))
def test_another_tenants_object_looks_like_a_missing_object(
    owned: dict[str, Any], stranger: APIClient, method: str, path: str, operation: Any
) -> None:
    area = area_of(path)
    if area in FOR_ALL and method == "get" and path.endswith("{id}"):
        pytest.skip("everybody reads it")
    assert area in owned, f"say in `owned` how one of {area} is made"
    hers, nobodys = owned[area], uuid.uuid4() if isinstance(owned[area], uuid.UUID) else 2**40
    of_nobodys = respond(stranger, method, path, operation, nobodys)
    before = everything()
    status, body = respond(stranger, method, path, operation, hers)
    # 403 for a user who may not do it to any object reveals nothing about this one.
    assert status == 404 or (status == 403 and (method != "get" or area in THE_NOCS | FOR_ALL))
    assert (status, body) == of_nobodys
    assert everything() == before


def queries(owned: dict[str, Any], operation: Any) -> list[dict[str, str]]:
    """Return the empty query, and each filter of a list with values that match Alice's objects."""
    vll = Vll.objects.get()
    words = (SECRET, str(vll.pk), str(owned["orders"]), str(vll.vni), "100", "host-cust1", "rhino")
    finds = {
        "customer": [f"{SECRET} Dairy"],
        "port": [str(owned["ports"])],
        "vll": [str(vll.pk)],
        "router": ["rhino"],
        "site": ["Zürich"],
        "vni": [str(vll.vni)],
        "gre_key": ["1"],  # her line has a VNI instead
        "vlan": ["100"],
        "q": list(words),
        "standing": ["complete"],
        "odd": ["shut"],
        "lifecycle": ["active"],
        "oper_status": ["op-unknown"],
        "in_sync": ["true", "false"],
        "state": ["completed"],
        "action": ["add"],
        "retired": ["false"],
        "role": ["admin"],
        "in_service": ["true"],
        "status": ["stale"],
        "month": [f"{clock.now():%Y-%m}"],
        "key": ["1"],  # none of her lines is a foreign line
    }
    names = [each["name"] for each in operation["parameters"] if each["in"] == "query"]
    filters = [name for name in names if name not in ("cursor", "limit")]
    unknown = set(filters) - set(finds)
    assert not unknown, f"say in `finds` by what {unknown} would find something of Alice's"
    return [{}, *({name: value} for name in filters for value in finds[name])]


@pytest.mark.parametrize(("_method", "path", "operation"), operations(of_one=False, methods=("get",)))
def test_a_list_has_nothing_of_another_tenant(
    owned: dict[str, Any], stranger: APIClient, _method: str, path: str, operation: Any
) -> None:
    secrets = [SECRET, *(str(each) for each in owned.values() if isinstance(each, uuid.UUID))]
    for query in queries(owned, operation):
        answer = stranger.get(path, query)
        assert answer.status_code == (403 if area_of(path) in THE_NOCS | {"netbox"} else 200), query
        text = b"".join(answer).decode().lower()
        assert [each for each in secrets if each in text] == []
        if path.endswith(".csv"):
            assert len(text.splitlines()) == 1, "the heading alone"
        elif area_of(path) not in THE_NOCS | FOR_ALL and "results" in answer.json():
            his = {"tokens": ["test"], "members": ["charlie"], "event-types": None}.get(area_of(path), [])
            rows = answer.json()["results"]
            found = [row.get("name", row.get("username", row.get("id"))) for row in rows]
            # A filter that matches Alice's objects matches none of his.
            assert his is None or found in (his, [] if query else his), query


@pytest.mark.parametrize(("_method", "path", "operation"), operations(of_one=False, methods=("post",)))
def test_a_body_that_names_another_tenants_object_is_refused_like_a_missing_object(
    owned: dict[str, Any], stranger: APIClient, _method: str, path: str, operation: Any
) -> None:
    """The body names a port, a reservation or a customer."""
    hers = {"port": owned["ports"], "hold": str(owned["holds"]), "customer": f"{SECRET} Dairy"}
    nobodys = {"port": 2**40, "hold": str(uuid.uuid4()), "customer": "Nobody"}
    wanted = example(operation)
    if not isinstance(wanted, dict) or naming(wanted, hers) == wanted:
        pytest.skip("names none")
    before = everything()

    def answered(names: dict[str, Any]) -> tuple[int, str]:
        answer = stranger.post(path, naming(wanted, names), format="json")
        fields = {name: value for name, value in answer.json().items() if name != "request_id"}
        text = json.dumps(fields)
        # Replace the longest names first, and only as whole words: a short id may be part of a UUID.
        each = sorted((re.escape(str(name)) for name in names.values()), key=len, reverse=True)
        text = re.sub(rf"\b({'|'.join(each)})\b", "…", text)
        return answer.status_code, text

    assert answered(hers) == answered(nobodys)
    assert answered(hers)[0] in (403, 422) or path.endswith("/validate")
    assert everything() == before


def naming(wanted: Any, names: dict[str, Any]) -> Any:
    """Return the body with these values for all members of these names."""
    if isinstance(wanted, dict):
        return {name: names.get(name, naming(value, names)) for name, value in wanted.items()}
    return [naming(each, names) for each in wanted] if isinstance(wanted, list) else wanted
