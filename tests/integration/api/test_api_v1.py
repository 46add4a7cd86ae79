"""The REST API: shapes, statuses, tenancy, and errors as RFC 9457."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.accounts.models import User
from portal.accounts.tokens import token_create
from portal.core import clock
from portal.vll.models import Order, Vll
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db


def client(user: User) -> APIClient:
    _, plain = token_create(user=user, name="test", now=clock.now())
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {plain}")
    return api


def body(isp: Isp, **changes: Any) -> dict[str, Any]:
    return {
        "description": "ZRH-AMS",
        "a_end": {
            "port": isp.ports["rhino:host-cust1"].pk,
            "tagging": "dot1q",
            "outer_vlan": 100,
            "inner_vlan": None,
            "exact_match": True,
        },
        "z_end": {"port": isp.ports["hippo:host-cust1"].pk, "tagging": "untagged"},
        "svc_mtu": 1500,
        "cir_bps": GBIT,
        "transport": "auto",
        **changes,
    }


def post(user: User, document: dict[str, Any]) -> Any:
    return client(user).post("/api/v1/vlls", document, format="json")


def test_order_returns_202_with_the_order_and_its_status_url(isp: Isp, alice: User) -> None:
    answer = post(alice, body(isp))
    assert answer.status_code == 202
    document = answer.json()
    assert answer["Location"].endswith(f"/api/v1/orders/{document['order']['id']}")
    assert int(answer["Retry-After"]) >= 1
    vll = document["vll"]
    assert (vll["lifecycle"], vll["transport"], vll["a_end"]["outer_vlan"], vll["policed"]) == (
        "pendingActive",
        "vxlan4",
        100,
        False,
    )
    watched = client(alice).get(answer["Location"]).json()
    assert (watched["state"], watched["action"]) == ("acknowledged", "add")


def test_response_shows_the_line_as_later_reads_do(isp: Isp, alice: User) -> None:
    api = client(alice)
    ordered = api.post("/api/v1/vlls", body(isp), format="json").json()
    assert ordered["vll"] == api.get(f"/api/v1/vlls/{ordered['vll']['id']}").json()
    assert ordered["order"] == api.get(f"/api/v1/orders/{ordered['order']['id']}").json()


def test_vll_and_list_show_both_ends(isp: Isp, alice: User) -> None:
    vll = order(isp, alice).vll
    api = client(alice)
    one = api.get(f"/api/v1/vlls/{vll.pk}").json()
    assert one["z_end"]["router"] == "hippo"
    listed = api.get("/api/v1/vlls").json()
    assert [row["id"] for row in listed["results"]] == [str(vll.pk)]
    assert listed["next"] is None


def test_lists_page_by_key_until_the_end(isp: Isp, alice: User) -> None:
    for number in range(1, 6):
        ends = body(isp)
        ends["a_end"] |= {"outer_vlan": number}
        ends["z_end"] = {"port": isp.ports["hippo:host-cust1"].pk, "tagging": "dot1q", "outer_vlan": number}
        assert post(alice, {**ends, "cir_bps": 1000}).status_code == 202
    api, url, seen = client(alice), "/api/v1/vlls?limit=2", []
    while url:
        page = api.get(url).json()
        seen += [row["id"] for row in page["results"]]
        url = page["next"]
    assert seen == [str(pk) for pk in Vll.objects.order_by("-created_at", "-id").values_list("pk", flat=True)]


def test_delete_orders_the_removal(isp: Isp, alice: User) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    answer = client(alice).delete(f"/api/v1/vlls/{vll.pk}")
    assert answer.status_code == 202
    assert answer.json()["order"]["action"] == "delete"
    assert answer.json()["vll"]["lifecycle"] == "pendingTerminate"


@pytest.mark.parametrize("path", ["vlls/{vll}", "vlls/{vll}/throughput", "orders/{order}"])
def test_stranger_gets_404_for_a_foreign_vll(isp: Isp, alice: User, charlie: User, path: str) -> None:
    placed = order(isp, alice)
    url = "/api/v1/" + path.format(vll=placed.vll_id, order=placed.pk)
    assert client(alice).get(url).status_code == 200
    answer = client(charlie).get(url)
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"


def test_strangers_lists_and_deletes_reach_no_foreign_vll(isp: Isp, alice: User, charlie: User) -> None:
    vll = order(isp, alice).vll
    api = client(charlie)
    for name in ("vlls", "orders", "ports"):
        assert api.get(f"/api/v1/{name}").json()["results"] == []
    assert api.delete(f"/api/v1/vlls/{vll.pk}").status_code == 404
    assert Order.objects.count() == 1


def test_viewer_reads_and_gets_403_for_orders(isp: Isp, alice: User, bob: User) -> None:
    vll = order(isp, alice).vll
    assert client(bob).get(f"/api/v1/vlls/{vll.pk}").status_code == 200
    assert client(bob).delete(f"/api/v1/vlls/{vll.pk}").status_code == 403
    assert post(bob, body(isp)).status_code == 403


@pytest.mark.parametrize("name", ["routers", "links"])
def test_only_the_noc_reads_network_internals(isp: Isp, alice: User, nora: User, name: str) -> None:
    assert client(alice).get(f"/api/v1/{name}").status_code == 403
    assert len(client(nora).get(f"/api/v1/{name}").json()["results"]) == 5


@pytest.mark.parametrize(
    ("token", "status"),
    [("", 401), ("Bearer ll_x_y", 401), ("Bearer nonsense", 401), ("Basic eDp5", 401)],
)
def test_missing_or_invalid_token_is_401_with_a_challenge(isp: Isp, token: str, status: int) -> None:
    api = APIClient()
    if token:
        api.credentials(HTTP_AUTHORIZATION=token)
    answer = api.get("/api/v1/vlls")
    assert answer.status_code == status
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert answer.json()["type"].startswith("http://testserver/api/docs/errors/#")


def test_revoked_token_is_refused(isp: Isp, alice: User) -> None:
    token, plain = token_create(user=alice, name="old", now=clock.now())
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {plain}")
    assert api.get("/api/v1/vlls").status_code == 200
    token.revoked_at = clock.now()
    token.save()
    assert api.get("/api/v1/vlls").status_code == 401


def fields_at_fault(answer: Any) -> set[tuple[str, str]]:
    return {(entry["field"], entry["code"]) for entry in answer.json()["errors"]}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"svc_mtu": "1500"}, "svc_mtu"),
        ({"svc_mtu": True}, "svc_mtu"),
        ({"svc_mtu": 1500.5}, "svc_mtu"),
        ({"svc_mtu": 10**400}, "svc_mtu"),
        ({"svc_mtu": -1}, "svc_mtu"),
        ({"svc_mtu": 67}, "svc_mtu"),
        ({"svc_mtu": 65536}, "svc_mtu"),
        ({"cir_bps": 0}, "cir_bps"),
        ({"cir_bps": None}, "cir_bps"),
        ({"transport": "mpls"}, "transport"),
        ({"transport": "l2xc"}, "transport"),
        ({"colour": "red"}, "colour"),
        ({"description": "x" * 101}, "description"),
        ({"a_end": None}, "a_end"),
        ({"a_end": {"port": 1}}, "a_end.tagging"),
        ({"a_end": {"port": 10**18, "tagging": "untagged"}}, "a_end.port"),
        ({"z_end": {"port": 999_999_999, "tagging": "untagged"}}, "z_end.port"),
    ],
)
def test_invalid_order_is_422_and_names_the_field(isp: Isp, alice: User, changes: dict, field: str) -> None:
    answer = post(alice, body(isp, **changes))
    assert answer.status_code == 422, answer.content
    assert field in {name for name, _ in fields_at_fault(answer)}
    assert not Order.objects.exists()


@pytest.mark.parametrize("vlan", [0, 4095, -1, 2**40, "7", "all", 1.5, True, [], {}])
def test_vlan_outside_1_to_4094_is_refused(isp: Isp, alice: User, vlan: Any) -> None:
    document = body(isp)
    document["a_end"]["outer_vlan"] = vlan
    answer = post(alice, document)
    assert answer.status_code == 422
    assert {name for name, _ in fields_at_fault(answer)} == {"a_end.outer_vlan"}


def test_taken_vlan_is_409_and_names_the_port(isp: Isp, alice: User) -> None:
    order(isp, alice)
    answer = post(alice, body(isp))
    assert answer.status_code == 409
    assert fields_at_fault(answer) == {("a_end.outer_vlan", "vlan-taken")}
    assert "rhino:host-cust1" in answer.json()["detail"]


def test_mtu_refusal_names_link_shortfall_and_largest_packet(isp: Isp, alice: User) -> None:
    answer = post(alice, body(isp, svc_mtu=8950))
    assert answer.status_code == 422
    entry = answer.json()["errors"][0]
    assert (entry["code"], entry["field"]) == ("path-too-narrow", "svc_mtu")
    facts = entry["facts"]
    assert (facts["available"], facts["required"], facts["shortfall"]) == (9000, 9004, 4)
    assert "rhino:bb-next — hippo:bb-prev" in entry["detail"]
    assert {"transport": "vxlan4", "largest_svc_mtu": 8942} in facts["capacities"]


@pytest.mark.parametrize("raw", ["", "{", "[]", "7", "null", '{"svc_mtu": 1e309}', "[" * 2000, '"\\ud800"'])
def test_body_that_is_no_object_is_a_problem_document(isp: Isp, alice: User, raw: str) -> None:
    answer = client(alice).post("/api/v1/vlls", raw, content_type="application/json")
    assert answer.status_code in (400, 422)
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["request_id"] == answer["X-Request-Id"]


def test_page_of_vlls_takes_as_many_queries_as_one_vll(
    isp: Isp, alice: User, django_assert_max_num_queries: Any
) -> None:
    for number in range(1, 11):
        document = body(isp, cir_bps=1000)
        document["a_end"]["outer_vlan"] = number
        document["z_end"] = {
            "port": isp.ports["hippo:host-cust1"].pk,
            "tagging": "dot1q",
            "outer_vlan": number,
        }
        assert post(alice, document).status_code == 202
    api = client(alice)
    api.get("/api/v1/vlls")
    with django_assert_max_num_queries(4):
        assert len(api.get("/api/v1/vlls").json()["results"]) == 10


def test_throughput_without_samples_is_null_and_never_zero(isp: Isp, alice: User) -> None:
    vll = order(isp, alice).vll
    since = int(clock.now().timestamp()) // 300 * 300 - 600
    graph = (
        client(alice).get(f"/api/v1/vlls/{vll.pk}/throughput?from={since}&to={since + 600}&step=300").json()
    )
    assert graph["a_end"] == [[since, None, None], [since + 300, None, None]]
    assert (graph["step_s"], graph["unit"]) == (300, "bit/s")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=1790000600&to=1790000000", "to"),
        ("from=yesterday", "from"),
        ("from=2026-11-01T00:00:00", "from"),
        ("from=1790000000&to=1790000600&step=7", "step"),
        ("step=x", "step"),
        ("from=1000000000&to=1790000000", "from"),
        ("from=99999999999999999999", "from"),
    ],
)
def test_invalid_range_is_422_and_names_the_field(isp: Isp, alice: User, query: str, field: str) -> None:
    vll = order(isp, alice).vll
    answer = client(alice).get(f"/api/v1/vlls/{vll.pk}/throughput?{query}")
    assert answer.status_code == 422
    assert field in {name for name, _ in fields_at_fault(answer)}
