"""A declarative client reads a document, changes what differs and sends the whole of it back."""

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.accounts.models import Membership, User
from portal.api.openapi.document import document
from portal.audit.models import EVENTS, TRACKED
from portal.core import clock
from portal.events.models import Event
from portal.notifications.models import Webhook
from portal.vll.line_spec import LineSpec
from portal.vll.models import Order, Vll
from portal.vll.operations.add_line import order_add
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import GBIT, Isp
from tests.integration.noc.test_noc_api import KINDS, documents
from tests.integration.orders import end
from tests.integration.requested_tasks import requested
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db


def read(api: APIClient, address: str) -> tuple[dict[str, Any], str]:
    answer = api.get(address)
    assert answer.status_code == 200, answer.content
    return answer.json(), answer["ETag"]


def send(api: APIClient, address: str, document: Any, etag: str = "*") -> Any:
    return api.patch(address, document, format="json", headers={"If-Match": etag})


@pytest.fixture
def chosen_by_us(isp: Isp, alice: User) -> Vll:
    """A line in service whose VLANs, transport and bursts the portal chose."""
    found = order_add(
        user=alice,
        spec=LineSpec(
            a_end=end(isp, "rhino:host-cust1", outer="any"),
            z_end=end(isp, "hippo:host-cust1"),
            svc_mtu=1500,
            cir_bps=GBIT,
            eir_bps=GBIT,
            description="ZRH-AMS",
        ),
        now=clock.now(),
    ).vll
    activate(found)
    return found


@pytest.fixture
def address(chosen_by_us: Vll) -> str:
    return f"/api/v1/vlls/{chosen_by_us.pk}"


def test_the_ordered_value_is_next_to_the_allocated_one(alice: User, address: str) -> None:
    line, _ = read(client(alice), address)
    assert (line["requested_transport"], line["transport"]) == ("auto", "vxlan4")
    assert (line["requested_cbs_bytes"], line["requested_ebs_bytes"]) == (None, None)
    assert line["cbs_bytes"] > 0
    assert line["ebs_bytes"] > 0
    assert (line["a_end"]["requested_outer_vlan"], line["a_end"]["outer_vlan"]) == ("any", 100)
    assert (line["z_end"]["requested_outer_vlan"], line["z_end"]["outer_vlan"]) == (100, 100)


def test_a_reservation_has_both_values_too(isp: Isp, alice: User) -> None:
    ends = {
        "a_end": {"port": isp.ports["rhino:host-cust1"].pk, "tagging": "dot1q", "outer_vlan": "any"},
        "z_end": {"port": isp.ports["hippo:host-cust1"].pk, "tagging": "dot1q", "outer_vlan": 7},
    }
    reservation = client(alice).post("/api/v1/holds", {**ends, "cir_bps": GBIT}, format="json").json()
    assert (reservation["a_end"]["requested_outer_vlan"], reservation["a_end"]["outer_vlan"]) == ("any", 7)
    assert (reservation["z_end"]["requested_outer_vlan"], reservation["z_end"]["outer_vlan"]) == (7, 7)


def test_the_document_of_a_line_sent_back_is_200_and_changes_nothing(alice: User, address: str) -> None:
    api = client(alice)
    line, etag = read(api, address)
    orders, events, outbox = Order.objects.count(), Event.objects.count(), len(requested())
    answer = send(api, address, line, etag)
    assert answer.status_code == 200, answer.content
    assert answer.json() == line
    assert answer["ETag"] == etag
    assert read(api, address) == (line, etag)
    assert (Order.objects.count(), Event.objects.count(), len(requested())) == (orders, events, outbox)


@pytest.mark.parametrize(
    "same",
    [
        {},
        {"a_end": {}},
        {"cir_bps": GBIT},
        {"transport": "auto"},
        {"a_end": {"outer_vlan": "any"}},
        {"cbs_bytes": None},
    ],
)
def test_an_equal_change_is_200_without_an_order(alice: User, address: str, same: dict[str, Any]) -> None:
    before = Order.objects.count()
    assert send(client(alice), address, same).status_code == 200
    assert Order.objects.count() == before


def test_a_whole_document_with_another_rate_orders_the_rate_alone(
    alice: User, address: str, chosen_by_us: Vll
) -> None:
    api = client(alice)
    line, etag = read(api, address)
    answer = send(api, address, line | {"cir_bps": 2 * GBIT}, etag)
    assert answer.status_code == 202, answer.content
    assert answer.json()["order"]["changes"] == ["bandwidth"]
    chosen_by_us.refresh_from_db()
    assert chosen_by_us.requested_transport == "auto"
    assert chosen_by_us.ends.get(side="a").requested_outer_vlan is None


def test_a_whole_document_with_another_description_needs_no_order(alice: User, address: str) -> None:
    api = client(alice)
    line, etag = read(api, address)
    answer = send(api, address, line | {"description": "ZRH-AMS 2"}, etag)
    assert (answer.status_code, answer.json()["description"]) == (200, "ZRH-AMS 2")


def test_the_ordered_value_counts_where_both_are_sent(alice: User, address: str, chosen_by_us: Vll) -> None:
    api = client(alice)
    line, etag = read(api, address)
    line["a_end"]["requested_outer_vlan"] = 200
    answer = send(api, address, line, etag)
    assert answer.status_code == 202, answer.content
    ordered = Order.objects.get(pk=answer.json()["order"]["id"])
    assert (ordered.after or {})["a"]["requested_outer_vlan"] == 200


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"vni": 7}, "vni"),
        ({"oper_status": "op-down", "cir_bps": 2 * GBIT}, "oper_status"),
        ({"transport": "gre4", "requested_transport": "auto"}, "transport"),
        ({"a_end": {"router": "hippo"}}, "a_end.router"),
        ({"a_end": {"outer_vlan": 7, "requested_outer_vlan": "any"}}, "a_end.outer_vlan"),
        ({"no_such_member": 1}, "no_such_member"),
    ],
)
def test_a_changed_read_only_member_is_refused_by_name(
    alice: User, address: str, changed: dict[str, Any], named: str
) -> None:
    before = Order.objects.count()
    answer = send(client(alice), address, changed)
    assert answer.status_code == 422, answer.content
    assert [each["field"] for each in answer.json()["errors"]] == [named]
    assert Order.objects.count() == before


def test_true_is_not_1(alice: User, address: str) -> None:
    line, _ = read(client(alice), address)
    assert send(client(alice), address, {"cir_bps": True}).status_code == 422
    assert send(client(alice), address, {"revision": float(line["revision"])}).status_code == 422


def test_who_may_not_order_may_not_send_it_back_either(bob: User, charlie: User, address: str) -> None:
    line, etag = read(client(bob), address)
    assert send(client(bob), address, line, etag).status_code == 403
    assert send(client(charlie), address, line, etag).status_code == 404


@pytest.mark.parametrize("kind", KINDS)
def test_a_piece_of_inventory_sent_back_is_200_and_changes_nothing(isp: Isp, nora: User, kind: str) -> None:
    api = client(nora)
    made = api.post(f"/api/v1/{kind}", documents(isp)[kind], format="json")
    assert made.status_code == 201, made.content
    address = f"/api/v1/{kind}/{made.json()['id']}"
    found, etag = read(api, address)
    trail = {model: model._default_manager.count() for model in TRACKED}
    events = Event.objects.count()
    answer = send(api, address, found, etag)
    assert (answer.status_code, answer.json(), answer["ETag"]) == (200, found, etag)
    assert read(api, address) == (found, etag)
    assert (Event.objects.count(), {model: model._default_manager.count() for model in TRACKED}) == (
        events,
        trail,
    )
    assert send(api, address, found | {"id": found["id"] + 1}, etag).status_code == 422


def test_a_whole_port_with_another_description_keeps_its_bookable_rate(isp: Isp, nora: User) -> None:
    api = client(nora)
    address = f"/api/v1/ports/{isp.ports['rhino:host-cust1'].pk}"
    port, etag = read(api, address)
    answer = send(api, address, port | {"description": "Rack 7"}, etag)
    assert answer.status_code == 200, answer.content
    assert answer.json() == port | {"description": "Rack 7"}


def test_a_member_and_a_webhook_sent_back_are_200(ada: User, alice: User) -> None:
    api = client(ada)
    member = f"/api/v1/members/{Membership.objects.get(user=alice).pk}"
    found, etag = read(api, member)
    assert send(api, member, found, etag).json() == found
    made = api.post("/api/v1/webhooks", {"url": "https://hooks.example.net/x"}, format="json")
    assert made.status_code == 201, made.content
    webhook = f"/api/v1/webhooks/{made.json()['id']}"
    found, etag = read(api, webhook)
    answer = send(api, webhook, found, etag)
    assert (answer.status_code, answer.json()) == (200, found)
    assert send(api, webhook, found | {"description": "x"}, etag).json() == found | {"description": "x"}
    assert Webhook.objects.get().description == "x"


def changing_operations() -> list[tuple[str, str]]:
    """Return the (method, path) of every operation of the API that changes an object."""
    paths: dict[str, dict[str, Any]] = document()["paths"]
    return sorted((method, path) for path, item in paths.items() for method in {"patch", "put"} & set(item))


def written() -> dict[Any, int]:
    """Return the numbers of rows that a change would add."""
    return {model: model._default_manager.count() for model in (*TRACKED, *EVENTS.values(), Event, Order)}


@pytest.fixture
def inventory(isp: Isp, nora: User) -> dict[str, tuple[User, str]]:
    """By path of the API, an object of each kind of the inventory and a user who may change it."""
    wanted, addresses = documents(isp), {}
    # A link of an unknown MTU that is in service would keep the line from being ordered.
    wanted["links"]["in_service"] = False
    for kind in KINDS:
        made = client(nora).post(f"/api/v1/{kind}", wanted[kind], format="json")
        assert made.status_code == 201, made.content
        addresses[f"/api/v1/{kind}/{{id}}"] = (nora, f"/api/v1/{kind}/{made.json()['id']}")
    return addresses


@pytest.fixture
def addresses(
    inventory: dict[str, tuple[User, str]], ada: User, alice: User, chosen_by_us: Vll
) -> dict[str, tuple[User, str]]:
    """By path of the API, an object of that path and a user who may change it."""
    webhook = client(ada).post("/api/v1/webhooks", {"url": "https://hooks.example.net/x"}, format="json")
    return inventory | {
        "/api/v1/mail-preferences": (ada, "/api/v1/mail-preferences"),
        "/api/v1/members/{id}": (ada, f"/api/v1/members/{Membership.objects.get(user=alice).pk}"),
        "/api/v1/vlls/{id}": (ada, f"/api/v1/vlls/{chosen_by_us.pk}"),
        "/api/v1/webhooks/{id}": (ada, f"/api/v1/webhooks/{webhook.json()['id']}"),
    }


@pytest.mark.parametrize(("method", "path"), changing_operations())
def test_every_change_takes_what_was_read_or_nothing_and_changes_nothing(
    addresses: dict[str, tuple[User, str]], method: str, path: str
) -> None:
    user, address = addresses[path]
    api = client(user)
    found, etag = read(api, address)
    before = written()
    # Where the portal chose a value, the same value alone is an order for it.
    alone = [{name: value} for name, value in found.items() if f"requested_{name}" not in found]
    equal_bodies = [{}, found, *alone]
    for body in equal_bodies:
        answer = getattr(api, method)(address, body, format="json", headers={"If-Match": etag})
        assert (body, answer.status_code) == (body, 200), answer.content
        assert (answer.json(), answer["ETag"]) == (found, etag)
    assert read(api, address) == (found, etag)
    assert written() == before


@pytest.mark.parametrize(("method", "path"), changing_operations())
def test_every_change_refuses_what_is_no_change(
    addresses: dict[str, tuple[User, str]], method: str, path: str
) -> None:
    user, address = addresses[path]
    api = client(user)
    before = written()
    bodies: list[Any] = [[], None, "text", 7, [{}], {"no_such_member": 1}]
    for body in bodies:
        answer = getattr(api, method)(
            address, json.dumps(body), content_type="application/json", headers={"If-Match": "*"}
        )
        assert answer.status_code in (400, 422), (body, answer.content)
        assert written() == before, body
