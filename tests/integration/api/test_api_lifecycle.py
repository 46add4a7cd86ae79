"""The REST API for a line's life cycle: shapes, statuses and tenancy."""

from typing import Any

import pytest

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.vll.models import Order, Vll
from portal.vll.operations.modify_line import order_modify
from tests.integration.api.test_api_v1 import body, client, post
from tests.integration.isp import GBIT, Isp
from tests.integration.router_answers import activate, refuse

pytestmark = pytest.mark.django_db


def patch(user: User, vll: Vll, document: dict[str, Any]) -> Any:
    return client(user).patch(f"/api/v1/vlls/{vll.pk}", document, format="json", headers={"If-Match": "*"})


def codes(answer_: Any) -> list[str]:
    return [entry["code"] for entry in answer_.json()["errors"]]


def test_validation_returns_everything_in_one_document(isp: Isp, alice: User) -> None:
    answered = client(alice).post("/api/v1/vlls/validate", body(isp), format="json")
    assert answered.status_code == 200
    said = answered.json()
    assert (said["feasible"], said["reasons"], said["transport"]) == (True, [], "vxlan4")
    assert (said["path"]["ip_mtu"], said["path"]["family"], said["largest_svc_mtu"]) == (9000, 4, 8946)
    assert said["path"]["links"][0] == {
        "name": "rhino:bb-next — hippo:bb-prev",
        "ip_mtu": 9000,
        "backup": False,
    }
    assert said["options"][1] == {
        "transport": "vxlan4",
        "overhead": 36,
        "largest_svc_mtu": 8942,
        "mpps_per_core": 14.15,
        "cycles_per_packet": 201.65,
        "reasons": [],
    }
    assert said["a_end"]["free_bps"] == 10 * GBIT
    assert (said["a_end"]["free_outer_vlans"], said["a_end"]["outer_vlans"][0]) == (4094, 100)
    assert not Vll.objects.exists()


def test_failed_validation_returns_reasons_with_facts(isp: Isp, alice: User, vll: Vll) -> None:
    said = client(alice).post("/api/v1/vlls/validate", body(isp, svc_mtu=9000), format="json").json()
    assert said["feasible"] is False
    assert [(each["field"], each["code"]) for each in said["reasons"]] == [
        ("svc_mtu", "path-too-narrow"),
        ("a_end.port", "frame-too-large-for-port"),
        ("a_end.outer_vlan", "vlan-taken"),
        ("z_end.port", "vlan-taken"),
    ]
    assert said["reasons"][0]["facts"]["available"] == 9000


def test_reservation_is_created_read_renewed_ordered_and_gone(isp: Isp, alice: User, charlie: User) -> None:
    api = client(alice)
    wanted = {name: body(isp)[name] for name in ("a_end", "z_end", "cir_bps")}
    made = api.post("/api/v1/holds", wanted, format="json")
    assert made.status_code == 201
    reservation = made.json()
    assert (reservation["renewals_left"], reservation["a_end"]["outer_vlan"], reservation["cir_bps"]) == (
        3,
        100,
        GBIT,
    )
    url = f"/api/v1/holds/{reservation['id']}"
    assert made["Location"].endswith(url)
    assert api.get(url).json() == reservation
    assert [row["id"] for row in api.get("/api/v1/holds").json()["results"]] == [reservation["id"]]
    assert client(charlie).get(url).status_code == 404
    assert client(charlie).post(f"{url}/renew").status_code == 404
    assert client(charlie).delete(url).status_code == 404
    assert client(charlie).get("/api/v1/holds").json()["results"] == []
    assert api.post(f"{url}/renew").json()["renewals_left"] == 2
    assert post(alice, body(isp, hold=reservation["id"])).status_code == 202
    assert api.get(url).status_code == 404


def test_deleting_a_reservation_returns_204(isp: Isp, alice: User, bob: User) -> None:
    wanted = {name: body(isp)[name] for name in ("a_end", "z_end", "cir_bps")}
    url = f"/api/v1/holds/{client(alice).post('/api/v1/holds', wanted, format='json').json()['id']}"
    assert client(bob).delete(url).status_code == 403
    assert client(alice).delete(url).status_code == 204
    assert client(alice).get(url).status_code == 404


def test_change_is_accepted_as_an_order(isp: Isp, alice: User, vll: Vll) -> None:
    answered = patch(alice, vll, {"cir_bps": 2 * GBIT, "a_end": {"outer_vlan": 200}})
    assert answered.status_code == 202
    said = answered.json()
    assert (said["order"]["action"], said["vll"]["revision"], said["vll"]["cir_bps"]) == (
        "modify",
        2,
        2 * GBIT,
    )
    assert said["vll"]["a_end"]["outer_vlan"] == 200


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"a_end": {"outer_vlan": 0}}, "a_end.outer_vlan"),
        ({"a_end": {"outer_vlan": "x"}}, "a_end.outer_vlan"),
        ({"z_end": {"colour": 1}}, "z_end.colour"),
        ({"svc_mtu": 67}, "svc_mtu"),
        ({"cir_bps": 0}, "cir_bps"),
        ({"z_end": {"port": 10**9}}, "z_end.port"),
        ({"transport": "l2xc"}, "transport"),
    ],
)
def test_invalid_change_is_422_and_names_the_field(
    alice: User, vll: Vll, document: dict[str, Any], field: str
) -> None:
    answered = patch(alice, vll, document)
    assert answered.status_code == 422, answered.content
    assert [entry["field"] for entry in answered.json()["errors"]] == [field]
    assert not Order.objects.filter(action="modify").exists()


def test_line_is_suspended_and_resumed(alice: User, vll: Vll) -> None:
    api, url = client(alice), f"/api/v1/vlls/{vll.pk}"
    assert api.post(f"{url}/suspend").json()["vll"]["admin_status"] == "admin-down"
    activate(vll)
    assert api.get(url).json()["lifecycle"] == "suspended"
    assert codes(api.post(f"{url}/suspend")) == ["wrong-lifecycle"]
    assert api.post(f"{url}/resume").status_code == 202


def test_removal_with_cooling_off_can_be_restored(alice: User, vll: Vll) -> None:
    api, url = client(alice), f"/api/v1/vlls/{vll.pk}"
    said = api.delete(f"{url}?cooling_off=3600").json()
    assert (said["order"]["action"], said["vll"]["lifecycle"]) == ("modify", "pendingTerminate")
    assert said["vll"]["decommission_at"] is not None
    activate(vll)
    assert api.post(f"{url}/restore").json()["vll"]["decommission_at"] is None
    activate(vll)
    assert api.get(url).json()["lifecycle"] == "active"


@pytest.mark.parametrize("cooling_off", ["-1", "x", "99999999999", "7776001"])
def test_invalid_cooling_off_is_422(alice: User, vll: Vll, cooling_off: str) -> None:
    answered = client(alice).delete(f"/api/v1/vlls/{vll.pk}?cooling_off={cooling_off}")
    assert answered.status_code == 422
    assert [entry["field"] for entry in answered.json()["errors"]] == ["cooling_off"]


def test_order_is_cancelled_and_failed_order_retried(isp: Isp, alice: User, vll: Vll) -> None:
    api = client(alice)
    change = order_modify(user=alice, vll=vll, changes={"cir_bps": 5}, now=clock.now())
    cancelled = api.post(f"/api/v1/orders/{change.pk}/cancel")
    assert (cancelled.status_code, cancelled.json()["order"]["state"]) == (202, "pendingCancellation")
    activate(vll)
    assert codes(api.post(f"/api/v1/orders/{change.pk}/cancel")) == ["wrong-order-state"]
    failing = order_modify(user=alice, vll=vll, changes={"cir_bps": 6}, now=clock.now())
    refuse(vll, "a")
    activate(vll)
    again = api.post(f"/api/v1/orders/{failing.pk}/retry").json()["order"]
    assert (again["retry_of"], again["state"]) == (str(failing.pk), "acknowledged")


def test_noc_approves_or_rejects_and_the_customer_reads_the_reason(
    isp: Isp, alice: User, nora: User, dairy: Customer
) -> None:
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=0)
    first, second = (
        post(alice, body(isp, z_end={"port": isp.ports["hippo:host-cust2"].pk, "tagging": "dot1q",
                                     "outer_vlan": vlan}, a_end=body(isp)["a_end"] | {"outer_vlan": vlan}))
        for vlan in (1, 2)
    )  # fmt: skip
    urls = [f"/api/v1/orders/{each.json()['order']['id']}" for each in (first, second)]
    assert first.json()["order"]["state"] == "held"
    assert client(alice).post(f"{urls[0]}/approve").status_code == 403
    approved = client(nora).post(f"{urls[0]}/approve").json()["order"]
    assert (approved["state"], approved["approved_at"] is None) == ("inProgress", False)
    assert client(nora).post(f"{urls[1]}/reject", {}, format="json").status_code == 422
    client(nora).post(f"{urls[1]}/reject", {"reason": "No fibre"}, format="json")
    assert client(alice).get(urls[1]).json()["failure"]["message"] == "No fibre"
    assert codes(client(nora).post(f"{urls[1]}/approve")) == ["wrong-order-state"]


@pytest.mark.parametrize(
    "path",
    [
        "vlls/{vll}/suspend",
        "vlls/{vll}/resume",
        "vlls/{vll}/restore",
        "orders/{order}/cancel",
        "orders/{order}/retry",
    ],
)
def test_stranger_gets_404_and_viewer_403(alice: User, bob: User, charlie: User, vll: Vll, path: str) -> None:
    url = "/api/v1/" + path.format(vll=vll.pk, order=vll.orders.get().pk)
    assert client(charlie).post(url).status_code == 404
    assert client(bob).post(url).status_code == 403
