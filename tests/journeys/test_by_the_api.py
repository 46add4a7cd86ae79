"""A customer and the NOC at work through the API, apart from one line's life: processes, stand-in VPPs."""

import csv
import io
from typing import Any
from uuid import uuid4

import httpx
import pytest

from devstack.stack import Stack
from drills.checks.vpptestctl import VppTestctl
from tests.journeys.test_a_year_of_a_line import WAIT_S, Api, owned, refusals_of, router_frozen
from tests.journeys.test_order_to_traffic import an_order


@pytest.fixture
def alice(live_stack: Stack) -> Api:
    return Api(live_stack, "customer")


@pytest.fixture
def nina(live_stack: Stack) -> Api:
    return Api(live_stack, "noc")


def plain(
    stack: Stack, token: str, method: str, path: str, body: Any = None, **headers: str
) -> httpx.Response:
    """Send one request and return its response, also an error."""
    headers = {"Authorization": f"Bearer {token}", **headers}
    with httpx.Client(base_url=f"{stack.url}/api/v1", timeout=30, trust_env=False) as http:
        return http.request(method, path, json=body, headers=headers)


def refused(stack: Stack, who: str, method: str, path: str, body: Any = None) -> tuple[int, list[str]]:
    """Return the status, and the codes of the problem document."""
    answer = plain(stack, stack.loaded[f"{who}_token"], method, path, body, **{"If-Match": "*"})
    assert answer.headers["Content-Type"] == "application/problem+json"
    return answer.status_code, [each["code"] for each in answer.json().get("errors", [])]


def test_tokens_tenants_and_the_trail_of_a_change(live_stack: Stack, alice: Api) -> None:
    made = alice("POST", "/tokens", {"name": "reader", "scopes": ["read"]})
    assert plain(live_stack, made["secret"], "GET", "/vlls").status_code == 200
    wanted = an_order(live_stack, vlan=400)
    assert plain(live_stack, made["secret"], "POST", "/vlls", wanted).status_code == 403
    elsewhere = {"name": "there", "scopes": ["read"], "allowed_networks": ["192.0.2.0/24"]}
    assert plain(live_stack, alice("POST", "/tokens", elsewhere)["secret"], "GET", "/vlls").status_code == 403

    vll = alice.done("POST", "/vlls", wanted)
    url = f"/vlls/{vll['id']}"
    for path in ("", "/history", "/throughput", "/months.csv", "/policing"):
        assert (
            plain(live_stack, live_stack.loaded["stranger_token"], "GET", f"{url}{path}").status_code == 404
        )
    alice.done("PATCH", url, {"cir_bps": 7_000_000, "description": "Renamed"})
    (order,) = [each for each in alice("GET", f"/orders?vll={vll['id']}")["results"] if each["changes"]]
    assert order["changes"] == ["description", "bandwidth"]
    trail = alice("GET", f"{url}/history")["results"]
    (rate,) = [each for each in trail if "cir_bps" in each["after"] and each["operation"] == "update"]
    assert (rate["before"]["cir_bps"], rate["after"]["cir_bps"]) == (10_000_000, 7_000_000)
    assert (rate["by"]["username"], bool(rate["by"]["token"])) == ("alice", True)

    alice("DELETE", f"/tokens/{made['id']}")
    assert plain(live_stack, made["secret"], "GET", "/vlls").status_code == 401
    alice.done("DELETE", url)


def test_a_failed_order_is_retried_when_the_conflict_is_gone(
    live_stack: Stack, alice: Api, nina: Api
) -> None:
    vpp = VppTestctl(live_stack.sockets["hippo"].api)
    wanted = an_order(live_stack, vlan=410)
    with router_frozen(nina, "hippo"):
        failed = alice("POST", "/vlls", wanted)["order"]
        foreign = vpp.add_sub("host-cust1", 410)  # after the portal has accepted the VLAN
    alice.wait(f"/orders/{failed['id']}", state="failed")
    assert alice("GET", f"/orders/{failed['id']}")["failure"]["code"] == "foreign_subinterface"
    assert owned(live_stack, failed["vll"]) == {}
    assert alice.client.wait(lambda: foreign in refusals_of(alice, wanted), timeout_s=WAIT_S)
    vpp.delete_sub(foreign)
    assert alice.client.wait(lambda: foreign not in refusals_of(alice, wanted), timeout_s=WAIT_S)
    again = alice("POST", f"/orders/{failed['id']}/retry")["order"]
    assert again["retry_of"] == failed["id"]
    alice.client.wait_completed(again["id"], timeout_s=WAIT_S)
    alice.done("DELETE", f"/vlls/{again['vll']}")


def test_the_noc_keeps_its_inventory_and_works_on_a_router(live_stack: Stack, alice: Api, nina: Api) -> None:
    name = f"koala-{uuid4().hex[:6]}"
    site = nina("POST", "/sites", {"name": name})
    router = nina("POST", "/routers", {"name": name, "site": name, "loopback4": "10.255.77.1"})
    ends = {"a_router": name, "a_interface": "x1", "z_router": "zebra", "z_interface": f"to-{name}"}
    link = nina("POST", "/links", {**ends, "a_ip_mtu": 9000, "z_ip_mtu": 9000, "in_service": False})
    reserved = nina("POST", "/vni-ranges", {"first": 16_000_000, "last": 16_000_009, "reason": name})
    customer = nina("POST", "/customers", {"name": name, "approve_up_to_bps": 1})
    assert nina("GET", "/pools")["vnis"]["reserved"] >= 10
    assert refused(live_stack, "noc", "DELETE", f"/sites/{site['id']}")[0] == 409
    assert refused(live_stack, "noc", "DELETE", f"/routers/{router['id']}") == (409, ["in-use"])
    for path, row in (
        ("links", link),
        ("routers", router),
        ("sites", site),
        ("vni-ranges", reserved),
        ("customers", customer),
    ):
        nina("DELETE", f"/{path}/{row['id']}")
        assert nina("GET", f"/{path}/{row['id']}/history")["results"][0]["operation"] == "delete"

    vll = alice.done("POST", "/vlls", an_order(live_stack, vlan=420))
    rhino = next(row for row in nina("GET", "/routers")["results"] if row["name"] == "rhino")
    actions = f"/routers/{rhino['id']}/actions"
    nina("POST", actions, {"do": "drain-begin"})
    wanted = an_order(live_stack, vlan=421)
    assert refused(live_stack, "customer", "POST", "/vlls", wanted) == (409, ["router-in-maintenance"])
    mine = [row for row in nina("GET", f"/routers/{rhino['id']}/ends")["results"] if row["vll"] == vll["id"]]
    assert [(row["side"], row["step"]) for row in mine] == [("a", "move")]
    left = nina("GET", f"/routers/{rhino['id']}/drain")["carrying"]
    moved = {"a_end": {"port": live_stack.port("hippo", "host-cust2"), "outer_vlan": 422}}
    nina.done("PATCH", f"/vlls/{vll['id']}", moved)
    assert alice.client.wait(lambda: set(owned(live_stack, vll["id"])) == {"hippo"}, timeout_s=WAIT_S)
    nina.wait(f"/routers/{rhino['id']}/drain", carrying=left - 1, leaving=0)
    nina("POST", actions, {"do": "drain-end"})
    nina("POST", actions, {"do": "maintenance-end"})

    # A frozen router gets no messages; after the freeze it catches up automatically.
    nina("POST", actions, {"do": "hold"})
    waiting = alice("POST", "/vlls", wanted)["order"]
    assert not alice.client.wait(
        lambda: alice("GET", f"/orders/{waiting['id']}")["state"] == "completed", timeout_s=2
    )
    nina("POST", actions, {"do": "release"})
    alice.client.wait_completed(waiting["id"], timeout_s=WAIT_S)
    alice.done("DELETE", f"/vlls/{waiting['vll']}")
    alice.done("DELETE", f"/vlls/{vll['id']}")


def test_refusals_name_the_full_resource(live_stack: Stack, alice: Api, nina: Api) -> None:
    first = alice.done("POST", "/vlls", an_order(live_stack, vlan=429, cir_bps=6_000_000_000))
    wanted = an_order(live_stack, vlan=430, cir_bps=6_000_000_000)
    status, codes = refused(live_stack, "customer", "POST", "/vlls", wanted)
    assert (status, codes[0]) == (409, "port-full")
    alice.done("DELETE", f"/vlls/{first['id']}")
    hippo = next(row for row in nina("GET", "/routers")["results"] if row["name"] == "hippo")
    as_it_was = {"cores": hippo["cores"], "cpu": hippo["cpu"]}
    weak = {"cores": 1, "cpu": "Atom C3558", "accept_affected": True}
    nina("PATCH", f"/routers/{hippo['id']}", weak)
    answer = alice("POST", "/vlls/validate", wanted | {"cir_bps": 9_000_000_000})
    nina("PATCH", f"/routers/{hippo['id']}", as_it_was)
    assert [(each["code"], each["facts"]["router"]) for each in answer["reasons"]] == [
        ("router-full", "hippo")
    ]
    assert alice("POST", "/vlls/validate", wanted | {"cir_bps": 1_000_000})["feasible"]


def test_reports_of_a_line_with_traffic(live_stack: Stack, alice: Api, nina: Api) -> None:
    vll = alice.done("POST", "/vlls", an_order(live_stack, vlan=440))
    url = f"/vlls/{vll['id']}"
    alice.wait(url, oper_status="op-up")
    assert alice.client.wait(
        lambda: any(row[1] and row[2] for row in alice.client.throughput(vll["id"], seconds=120)["a_end"]),
        timeout_s=60,
    )
    known = alice("GET", f"{url}/availability")
    assert known["up_s"] > 0
    assert known["availability"] is not None
    # A line that is a minute old has no month and no comparable 5 minutes yet. The API invents none.
    assert alice("GET", f"{url}/percentiles") == {"results": []}
    assert alice("GET", f"{url}/loss")["a_to_z"]["loss_ratio"] is None

    def drops_counted() -> bool:
        lost = alice("GET", f"{url}/loss")
        return all(
            lost[end][way] is not None for end in ("a_end", "z_end") for way in ("dropped_in", "dropped_out")
        )

    # The routers count their drops at different times. They drop the first frames while a neighbour is
    # resolved, or none.
    assert alice.client.wait(drops_counted, timeout_s=60), alice("GET", f"{url}/loss")
    link = nina("GET", "/links")["results"][0]
    sides = nina("GET", f"/links/{link['id']}/losses")
    assert all(sides[side]["totals"]["rx_miss"] is not None for side in ("a_side", "z_side"))
    ids = {each["name"]: each["id"] for each in nina("GET", "/routers")["results"]}
    losses = nina("GET", f"/routers/{ids[link['a_router']]}/losses")
    assert losses["router"]["totals"]["buffers_free"] > 0
    assert losses["router"]["totals"]["no_such_tunnel"] is not None
    token = live_stack.loaded["customer_token"]
    (month,) = csv.DictReader(io.StringIO(plain(live_stack, token, "GET", f"{url}/months.csv").text))
    assert (float(month["up_s"]) > 0, month["a_to_z_loss_ratio"], month["a_p95_max_bps"]) == (True, "", "")
    counted = list(csv.DictReader(io.StringIO(plain(live_stack, token, "GET", f"{url}/throughput.csv").text)))
    assert any(row["a_in"] for row in counted)
    alice.done("DELETE", url)


def test_idempotency_etags_and_pages_work_as_documented(live_stack: Stack, alice: Api) -> None:
    token = live_stack.loaded["customer_token"]
    wanted, key = an_order(live_stack, vlan=450), f'"{uuid4()}"'
    first, again = (
        plain(live_stack, token, "POST", "/vlls", wanted, **{"Idempotency-Key": key}) for _ in range(2)
    )
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    other = plain(live_stack, token, "POST", "/vlls", wanted | {"svc_mtu": 1400}, **{"Idempotency-Key": key})
    assert other.status_code == 422
    assert first.headers["Location"].endswith(f"/orders/{first.json()['order']['id']}")
    order = first.json()["order"]
    alice.client.wait_completed(order["id"], timeout_s=WAIT_S)
    assert alice("GET", f"/jobs/{order['id']}")
    url = f"/vlls/{order['vll']}"
    # The document changes until the routers' first reports of the line have arrived.
    alice.wait(url, oper_status="op-up", in_sync=True)
    etag = plain(live_stack, token, "GET", url).headers["ETag"]
    assert plain(live_stack, token, "PATCH", url, {"svc_mtu": 1400}).status_code == 428
    changed = plain(live_stack, token, "PATCH", url, {"description": "x"}, **{"If-Match": etag})
    assert changed.status_code == 200
    stale = plain(live_stack, token, "PATCH", url, {"description": "y"}, **{"If-Match": etag})
    assert stale.status_code == 412
    assert stale.json()["request_id"] == stale.headers["X-Request-Id"]
    assert plain(live_stack, token, "GET", "/schema").status_code == 200
    alice.done("DELETE", url)
    page = alice("GET", "/orders?limit=1")
    assert len(page["results"]) == 1
    assert page["next"]
