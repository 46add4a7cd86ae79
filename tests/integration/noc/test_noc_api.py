"""The inventory in the REST API: the NOC writes it, only NOC admins remove objects, nobody else writes."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.accounts.models import Customer, User
from portal.accounts.tokens import token_create
from portal.api.rest.request_bodies import StrictSerializer
from portal.api.v1.network import inventory_serializers as writes
from portal.core import clock
from portal.events.models import Event
from portal.inventory.models import BackboneLink, ObservedInterface, Port, Router, Site
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import order

pytestmark = pytest.mark.django_db
KINDS = ["sites", "routers", "ports", "links", "customers", "vni-ranges"]


def client(user: User) -> APIClient:
    _, plain = token_create(user=user, name="test", now=clock.now())
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {plain}")
    return api


def post(user: User, kind: str, document: dict[str, Any]) -> Any:
    return client(user).post(f"/api/v1/{kind}", document, format="json")


def patch(user: User, address: str, document: dict[str, Any], etag: str = "*") -> Any:
    return client(user).patch(address, document, format="json", HTTP_IF_MATCH=etag)


def documents(isp: Isp) -> dict[str, dict[str, Any]]:
    """Return one valid document of each kind."""
    return {
        "sites": {"name": "Bern", "latitude": 46.948, "longitude": 7.4474},
        "routers": {"name": "koala", "site": "Zürich", "loopback4": "10.255.0.99", "cores": 8},
        "ports": {"router": "rhino", "interface": "x1", "speed_bps": GBIT, "customer": "Alpine Dairy"},
        "links": {
            "a_router": "rhino",
            "a_interface": "bb-new",
            "z_router": "panda",
            "z_interface": "bb-new",
            "a_ip_mtu": 9000,
        },
        "customers": {"name": "Basel Bakery", "approve_up_to_bps": GBIT},
        "vni-ranges": {"first": 1, "last": 9, "reason": "lab"},
    }


@pytest.mark.parametrize("kind", KINDS)
def test_noc_creates_and_reads_and_an_admin_removes(isp: Isp, nora: User, nina: User, kind: str) -> None:
    made = post(nora, kind, documents(isp)[kind])
    assert made.status_code == 201
    address = made["Location"]
    for name, value in documents(isp)[kind].items():
        assert made.json()[name] == value
    read = client(nora).get(address)
    assert read.json() == made.json()
    assert read["ETag"] == made["ETag"]
    if kind == "links":
        assert patch(nora, address, {"in_service": False}).status_code == 200
    assert client(nora).delete(address).status_code == 403
    assert client(nina).delete(address).status_code == 204
    assert client(nina).get(address).status_code == 404


def changes(isp: Isp) -> dict[str, tuple[type[StrictSerializer], dict[str, Any]]]:
    """Return the operation that changes each kind, and another value for each of its members."""
    addresses = {
        "loopback4": "10.255.0.98",
        "loopback6": "fd00:255::98",
        "agent_url": "https://koala.example",
    }
    sides = {"a_interface": "bb-a", "z_interface": "bb-z", "a_router": "hippo", "z_router": "zebra"}
    numbers = {"a_metric": 20, "z_metric": 30, "a_ip_mtu": None, "z_ip_mtu": 1600}
    rates = {"speed_bps": 2 * GBIT, "bookable_bps": GBIT, "oversubscription_percent": 200}
    return {
        "sites": (writes.SiteWriteSerializer, {"name": "Thun", "latitude": -46.5, "longitude": 7.25}),
        "routers": (
            writes.RouterChangeSerializer,
            {
                "site": "Basel",
                **addresses,
                "cpu": "Xeon",
                "cores": 4,
                "line_test_pps": 500,
                "underlay_table": 10,
                "accept_affected": True,
            },
        ),
        "ports": (
            writes.PortChangeSerializer,
            {"description": "dock 4", "kind": "enni", "customer": None, **rates, "max_frame": 1522}
            | {"accept_affected": True},
        ),
        "links": (
            writes.LinkWriteSerializer,
            {**sides, **numbers, "ipv4": False, "ipv6": False, "in_service": False, "accept_affected": True},
        ),
        "customers": (
            writes.CustomerWriteSerializer,
            {"name": "Thun Toys", "approve_up_to_bps": None, "cooling_off_s": 60},
        ),
        "vni-ranges": (writes.VniRangeWriteSerializer, {"first": 2, "last": 8, "reason": "spare"}),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_equal_document_changes_nothing(isp: Isp, nora: User, kind: str) -> None:
    made = post(nora, kind, documents(isp)[kind])
    events = Event.objects.count()
    response = patch(nora, made["Location"], {})
    assert (response.status_code, response.json(), response["ETag"]) == (200, made.json(), made["ETag"])
    assert Event.objects.count() == events


@pytest.mark.parametrize("kind", KINDS)
def test_each_member_can_be_changed_alone(isp: Isp, nora: User, kind: str) -> None:
    Site.objects.create(name="Basel")
    made = post(nora, kind, documents(isp)[kind])
    serializer, members = changes(isp)[kind]
    assert set(members) == set(serializer().fields)
    for name, value in members.items():
        response = patch(nora, made["Location"], {name: value})
        assert (name, response.status_code) == (name, 200)
        assert response.json().get(name, True) == value


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_noc_writes(isp: Isp, alice: User, charlie: User, kind: str) -> None:
    rows = {"sites": Site, "routers": Router, "ports": Port, "links": BackboneLink, "customers": Customer}
    row = rows[kind].objects.first().pk if kind in rows else 1
    for user in (alice, charlie):
        assert post(user, kind, documents(isp)[kind]).status_code == 403
        assert patch(user, f"/api/v1/{kind}/{row}", {}).status_code == 403
        assert client(user).delete(f"/api/v1/{kind}/{row}").status_code == 403


@pytest.mark.parametrize("kind", ["routers", "links", "customers", "vni-ranges"])
def test_only_the_noc_reads_network_internals(isp: Isp, alice: User, kind: str) -> None:
    assert client(alice).get(f"/api/v1/{kind}").status_code == 403


def test_port_of_another_customer_is_404(isp: Isp, charlie: User) -> None:
    assert client(charlie).get(f"/api/v1/ports/{isp.ports['rhino:host-cust1'].pk}").status_code == 404


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_member_is_refused_and_nothing_is_created(isp: Isp, nora: User, kind: str) -> None:
    response = post(nora, kind, documents(isp)[kind] | {"colour": "blue"})
    assert response.status_code == 422
    assert response["Content-Type"] == "application/problem+json"
    assert [(e["field"], e["code"]) for e in response.json()["errors"]] == [("colour", "unknown_field")]


@pytest.mark.parametrize(
    ("kind", "wrong", "field", "code"),
    [
        ("routers", {"name": "Koala"}, "name", "invalid"),
        ("routers", {"site": "Atlantis"}, "site", "does_not_exist"),
        ("routers", {"site": "Zürich\0"}, "site", "does_not_exist"),
        ("routers", {"site": 7}, "site", "invalid"),
        ("routers", {"agent_url": "http://koala"}, "agent_url", "invalid"),
        ("routers", {"loopback4": "10.0.0.256"}, "loopback4", "invalid"),
        ("routers", {"cores": 0}, "cores", "out-of-range"),
        ("routers", {"line_test_pps": 99}, "line_test_pps", "out-of-range"),
        ("routers", {"underlay_table": 2**32 - 1}, "underlay_table", "out-of-range"),
        ("ports", {"router": "rhino\0"}, "router", "does_not_exist"),
        ("ports", {"customer": "\0"}, "customer", "does_not_exist"),
        ("ports", {"customer": ["Alpine Dairy"]}, "customer", "invalid"),
        ("ports", {"speed_bps": "1"}, "speed_bps", "not_integer"),
        ("ports", {"speed_bps": 2**53}, "speed_bps", "max_value"),
        ("ports", {"kind": "nni"}, "kind", "invalid_choice"),
        ("ports", {"interface": "a b"}, "interface", "not-an-interface-name"),
        ("ports", {"max_frame": 63}, "max_frame", "out-of-range"),
        ("links", {"z_router": "rhino"}, "z_router", "link-within-router"),
        ("links", {"a_router": "rhino\0"}, "a_router", "does_not_exist"),
        ("links", {"a_ip_mtu": 65536}, "a_ip_mtu", "out-of-range"),
        ("links", {"ipv4": 1}, "ipv4", "invalid"),
        ("customers", {"name": "a\u0000b"}, "name", "null_characters_not_allowed"),
        ("customers", {"cooling_off_s": 90 * 86400 + 1}, "cooling_off_s", "out-of-range"),
        ("vni-ranges", {"last": 2**24}, "last", "vni-range-backwards"),
    ],
)
def test_invalid_input_names_its_field(
    isp: Isp, nora: User, kind: str, wrong: dict[str, Any], field: str, code: str
) -> None:
    response = post(nora, kind, documents(isp)[kind] | wrong)
    assert response.status_code == 422
    assert [(e["field"], e["code"]) for e in response.json()["errors"]] == [(field, code)]


def test_object_in_use_is_409_and_names_the_users(isp: Isp, alice: User, nina: User) -> None:
    order(isp, alice, description="Milk run")
    response = client(nina).delete(f"/api/v1/ports/{isp.ports['rhino:host-cust1'].pk}")
    assert response.status_code == 409
    document = response.json()
    assert document["type"] == "http://testserver/api/docs/errors/#in-use"
    assert document["errors"][0]["facts"]["used_by"] == ["line Milk run"]
    assert "Milk run" in document["detail"]


def test_interface_in_use_is_409(isp: Isp, nora: User) -> None:
    response = post(nora, "links", documents(isp)["links"] | {"z_router": "hippo", "z_interface": "bb-prev"})
    assert response.status_code == 409
    assert response.json()["errors"][0]["field"] == "z_interface"


def test_change_needs_the_current_version(isp: Isp, nora: User) -> None:
    address = f"/api/v1/ports/{isp.ports['rhino:host-cust1'].pk}"
    etag = client(nora).get(address)["ETag"]
    assert client(nora).patch(address, {"description": "x"}, format="json").status_code == 428
    changed = patch(nora, address, {"description": "dock 4"}, etag)
    assert (changed.status_code, changed.json()["description"]) == (200, "dock 4")
    assert patch(nora, address, {"description": "late"}, etag).status_code == 412


def test_immutable_members_cannot_be_changed(isp: Isp, nora: User) -> None:
    port, router = isp.ports["rhino:host-cust1"], isp.routers["rhino"]
    assert patch(nora, f"/api/v1/ports/{port.pk}", {"interface": "x9"}).status_code == 422
    assert patch(nora, f"/api/v1/routers/{router.pk}", {"name": "koala"}).status_code == 422


def test_repeated_key_creates_one_object(isp: Isp, nora: User) -> None:
    api = client(nora)
    for _ in range(2):
        response = api.post("/api/v1/sites", {"name": "Bern"}, format="json", HTTP_IDEMPOTENCY_KEY="k1")
        assert response.status_code == 201
    assert Site.objects.filter(name="Bern").count() == 1


def test_link_shows_conflicting_declared_and_observed_mtu(isp: Isp, nora: User) -> None:
    link = isp.links["rhino-hippo"]
    ObservedInterface.objects.filter(router=isp.routers["rhino"], name="bb-next").update(ip_mtu=1500)
    shown = {row["id"]: row for row in client(nora).get("/api/v1/links").json()["results"]}
    assert shown[link.pk]["mtu_mismatch"] is True
    assert shown[link.pk]["a_observed_ip_mtu"] == 1500
    assert [row["mtu_mismatch"] for row in shown.values()].count(True) == 1
