"""A year of a line through the API, from its order to its end: real processes, stand-in VPPs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from devstack.client import Client
from devstack.stack import Stack
from provisioning.agent_client import router_context
from tests.journeys.test_order_to_traffic import an_order

WAIT_S = 30


class Api:
    """The REST API as one user; every write sends ``If-Match: *``."""

    def __init__(self, stack: Stack, who: str) -> None:
        self.client: Client = stack.client(who)
        token = stack.loaded[f"{who}_token"]
        self._http = httpx.Client(
            base_url=f"{stack.url}/api/v1",
            headers={"Authorization": f"Bearer {token}", "If-Match": "*"},
            timeout=30,
            trust_env=False,
        )

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._http.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def done(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Place an order, wait until it is completed, and return the VLL."""
        order = self(method, path, body)["order"]
        self.client.wait_completed(order["id"], timeout_s=WAIT_S)
        vll: dict[str, Any] = self("GET", f"/vlls/{order['vll']}")
        return vll

    def wait(self, path: str, **wanted: Any) -> None:
        def reached() -> bool:
            found = self("GET", path)
            return all(found[name] == value for name, value in wanted.items())

        assert self.client.wait(reached, timeout_s=WAIT_S), self("GET", path)


@contextmanager
def router_frozen(nina: Api, name: str) -> Iterator[None]:
    """Freeze a router for the block: the portal sends it nothing, so orders over it wait."""
    router = next(row for row in nina("GET", "/routers")["results"] if row["name"] == name)
    nina("POST", f"/routers/{router['id']}/actions", {"do": "hold"})
    try:
        yield
    finally:
        nina("POST", f"/routers/{router['id']}/actions", {"do": "release"})


def refusals_of(customer: Api, body: Any) -> str:
    """Return all reasons for which the portal would refuse an order now, as text."""
    return " ".join(each["detail"] for each in customer("POST", "/vlls/validate", body)["reasons"])


@pytest.fixture
def alice(live_stack: Stack) -> Api:
    return Api(live_stack, "customer")


@pytest.fixture
def nina(live_stack: Stack) -> Api:
    return Api(live_stack, "noc")


def owned(stack: Stack, vll: str) -> dict[str, list[str]]:
    """Return the objects that each agent owns for a VLL, as ``end interface`` by router."""
    found = {}
    for name, url in stack.agent_urls.items():
        context = router_context(pki=stack.portal.pki, router=name, pinned=None)
        with httpx.Client(base_url=url, verify=context, trust_env=False) as agent:
            state = agent.get("/v1/state").raise_for_status().json()
        mine = [f"{each['end']} {each['kind']}" for each in state["owned"] if each["vll"] == vll]
        if mine:
            found[name] = sorted(mine)
    return found


def test_a_line_is_reserved_ordered_changed_moved_suspended_and_restored(
    live_stack: Stack, alice: Api
) -> None:
    wanted = an_order(live_stack, vlan=300)
    assert alice("POST", "/vlls/validate", wanted)["feasible"]
    reservation = alice("POST", "/holds", {name: wanted[name] for name in ("a_end", "z_end", "cir_bps")})
    assert not alice("POST", "/vlls/validate", wanted)["feasible"]
    vll = alice.done("POST", "/vlls", wanted | {"hold": reservation["id"]})
    url = f"/vlls/{vll['id']}"

    vll = alice.done("PATCH", url, {"cir_bps": 20_000_000, "a_end": {"outer_vlan": 301}, "svc_mtu": 1600})
    assert (vll["cir_bps"], vll["a_end"]["outer_vlan"], vll["in_sync"]) == (20_000_000, 301, True)
    vll = alice.done("PATCH", url, {"transport": "geneve6"})
    assert owned(live_stack, vll["id"]) == {
        "rhino": ["a geneve", "a subif"],
        "hippo": ["z geneve", "z subif"],
    }

    moved = {
        "a_end": {"port": live_stack.port("hippo", "host-cust1"), "outer_vlan": 302},
        "transport": "auto",
    }
    vll = alice.done("PATCH", url, moved)
    assert (vll["transport"], vll["a_end"]["router"]) == ("l2xc", "hippo")
    gone = {"hippo": ["a subif", "z subif"]}
    assert alice.client.wait(lambda: owned(live_stack, vll["id"]) == gone, timeout_s=WAIT_S)

    assert alice.done("POST", f"{url}/suspend")["lifecycle"] == "suspended"
    assert alice.done("POST", f"{url}/resume")["lifecycle"] == "active"
    assert alice.done("DELETE", f"{url}?cooling_off=3600")["lifecycle"] == "pendingTerminate"
    assert alice.done("POST", f"{url}/restore")["lifecycle"] == "active"
    alice("DELETE", f"{url}?cooling_off=2")
    alice.wait(url, lifecycle="terminated")
    assert owned(live_stack, vll["id"]) == {}


def test_a_cancelled_reservation_releases_its_resources(live_stack: Stack, alice: Api) -> None:
    wanted = an_order(live_stack, vlan=310)
    reservation = alice("POST", "/holds", {name: wanted[name] for name in ("a_end", "z_end", "cir_bps")})
    assert alice("POST", f"/holds/{reservation['id']}/renew")["renewals_left"] == 2
    alice("DELETE", f"/holds/{reservation['id']}")
    assert alice("POST", "/vlls/validate", wanted)["feasible"]


def test_a_change_that_is_cancelled_or_completed_leaves_a_consistent_line(
    live_stack: Stack, alice: Api
) -> None:
    vll = alice.done("POST", "/vlls", an_order(live_stack, vlan=320))
    url = f"/vlls/{vll['id']}"
    change = alice("PATCH", url, {"a_end": {"outer_vlan": 321}})["order"]["id"]
    answer = alice._http.post(f"/orders/{change}/cancel")
    assert answer.status_code in (202, 409)
    alice.client.wait(
        lambda: alice("GET", f"/orders/{change}")["state"] in ("completed", "cancelled"), timeout_s=WAIT_S
    )
    expected = 320 if alice("GET", f"/orders/{change}")["state"] == "cancelled" else 321
    alice.wait(url, lifecycle="active", in_sync=True)
    assert alice("GET", url)["a_end"]["outer_vlan"] == expected
