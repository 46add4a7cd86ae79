"""The main task through the API: processes, sockets and certificates as in production, stand-in VPPs."""

from collections.abc import Callable

import httpx
import pytest

from devstack.client import Client, Refused
from devstack.stack import Stack
from provisioning.agent_client import router_context

PORT = "host-cust1"


def an_order(stack: Stack, vlan: int, **changes: object) -> dict[str, object]:
    end = {"tagging": "dot1q", "outer_vlan": vlan, "inner_vlan": None, "exact_match": True}
    return {
        "description": "Zurich-Basel",
        "a_end": end | {"port": stack.port("rhino", PORT)},
        "z_end": end | {"port": stack.port("hippo", PORT)},
        "svc_mtu": 1500,
        "cir_bps": 10_000_000,
        "transport": "auto",
    } | changes


@pytest.fixture
def alice(live_stack: Stack) -> Client:
    return live_stack.client("customer")


@pytest.fixture
def owned(live_stack: Stack) -> Callable[[str], list[str]]:
    """Return a function that reads the objects of a VLL from an agent's API with the portal's certificate."""

    def read(vll: str) -> list[str]:
        kinds = []
        for name, url in live_stack.agent_urls.items():
            context = router_context(pki=live_stack.portal.pki, router=name, pinned=None)
            with httpx.Client(base_url=url, verify=context, trust_env=False) as agent:
                state = agent.get("/v1/state").raise_for_status().json()
            kinds += [f"{name} {each['kind']}" for each in state["owned"] if each["vll"] == vll]
        return sorted(kinds)

    return read


def test_a_vll_is_ordered_carries_traffic_and_is_removed_without_leftovers(
    live_stack: Stack, alice: Client, owned: Callable[[str], list[str]]
) -> None:
    accepted = alice.order(**an_order(live_stack, vlan=100))
    alice.wait_completed(accepted.order, timeout_s=30)

    vll = alice.vll(accepted.vll)
    assert (vll["lifecycle"], vll["transport"]) == ("active", "vxlan4")
    assert owned(accepted.vll) == ["hippo subif", "hippo vxlan", "rhino subif", "rhino vxlan"]
    assert alice.wait(lambda: alice.vll(accepted.vll)["oper_status"] == "op-up", timeout_s=30)

    def counted() -> bool:
        series = alice.throughput(accepted.vll, seconds=120)
        return all(any(i and o for _, i, o in series[end]) for end in ("a_end", "z_end"))

    assert alice.wait(counted, timeout_s=45)

    alice.wait_completed(alice.remove(accepted.vll), timeout_s=30)
    assert alice.vll(accepted.vll)["lifecycle"] == "terminated"
    assert owned(accepted.vll) == []


def test_another_customer_neither_sees_nor_removes_a_line(live_stack: Stack, alice: Client) -> None:
    accepted = alice.order(**an_order(live_stack, vlan=101))
    alice.wait_completed(accepted.order, timeout_s=30)
    charlie = live_stack.client("stranger")
    for attempt in (charlie.vll, charlie.remove):
        with pytest.raises(Refused) as refusal:
            attempt(accepted.vll)
        assert refusal.value.status == 404
    assert alice.vll(accepted.vll)["lifecycle"] == "active"


def test_one_byte_more_than_the_underlay_carries_is_refused_with_figures(
    live_stack: Stack, alice: Client
) -> None:
    largest = 9000 - 36 - 14
    with pytest.raises(Refused) as refusal:
        alice.order(**an_order(live_stack, vlan=102, svc_mtu=largest + 1, transport="vxlan4"))
    assert refusal.value.status == 422
    [error] = refusal.value.problem["errors"]
    assert error["field"] == "svc_mtu"
    assert error["facts"]["required"] == 9001
    assert error["facts"]["available"] == 9000
    accepted = alice.order(**an_order(live_stack, vlan=102, svc_mtu=largest, transport="vxlan4"))
    alice.wait_completed(accepted.order, timeout_s=30)
