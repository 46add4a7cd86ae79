"""Orders that fail or are cancelled at any stage leave lines in service unchanged on both routers."""

from typing import Any

import pytest

from devstack.stack import Stack
from drills.checks.vpptestctl import VppTestctl
from tests.journeys.test_a_year_of_a_line import WAIT_S, Api, owned, refusals_of, router_frozen
from tests.journeys.test_by_the_api import refused
from tests.journeys.test_order_to_traffic import PORT, an_order


@pytest.fixture
def alice(live_stack: Stack) -> Api:
    return Api(live_stack, "customer")


@pytest.fixture
def nina(live_stack: Stack) -> Api:
    return Api(live_stack, "noc")


def forwarding(stack: Stack, vll: str) -> dict[str, set[tuple[str, str]]]:
    """Return the connections of each VPP for a VLL, by interface names."""
    found = {}
    for router, sockets in stack.sockets.items():
        config = VppTestctl(sockets.api).config()
        owned = {each["index"] for each in config.tagged(vll)}
        found[router] = {
            (config.interfaces[here]["name"], config.interfaces[there]["name"])
            for here, there in config.connects.items()
            if here in owned
        }
    return found


def booked(alice: Api, stack: Stack) -> list[int]:
    ports = [stack.port(router, PORT) for router in ("rhino", "hippo")]
    return [alice("GET", f"/ports/{port}")["booked_bps"] for port in ports]


def test_a_change_that_one_router_refuses_changes_neither_and_can_be_retried(
    live_stack: Stack, alice: Api, nina: Api
) -> None:
    vll = alice.done("POST", "/vlls", an_order(live_stack, vlan=460))
    url = f"/vlls/{vll['id']}"
    before, carried, rates = (
        owned(live_stack, vll["id"]),
        forwarding(live_stack, vll["id"]),
        booked(alice, live_stack),
    )
    assert [len(pairs) for pairs in carried.values()] == [2, 2]

    vpp = VppTestctl(live_stack.sockets["hippo"].api)
    change = {
        "a_end": {"outer_vlan": 461},
        "z_end": {"outer_vlan": 461},
        "cir_bps": 20_000_000,
        "transport": "geneve4",
    }
    with router_frozen(nina, "hippo"):
        order = alice("PATCH", url, change)["order"]["id"]
        foreign = vpp.add_sub(PORT, 461)  # after the portal has accepted the VLAN
    alice.wait(f"/orders/{order}", state="failed")
    failure = alice("GET", f"/orders/{order}")["failure"]
    assert (failure["router"], failure["code"]) == ("hippo", "foreign_subinterface")
    alice.wait(url, lifecycle="active", in_sync=True)
    now = alice("GET", url)
    facts = ("cir_bps", "transport", "vni", "svc_mtu")
    assert [now[fact] for fact in facts] == [vll[fact] for fact in facts]
    assert [now[end]["outer_vlan"] for end in ("a_end", "z_end")] == [460, 460]
    assert (owned(live_stack, vll["id"]), forwarding(live_stack, vll["id"])) == (before, carried)
    assert booked(alice, live_stack) == rates
    assert vpp.config().named(foreign) is not None

    unwanted = an_order(live_stack, vlan=461)
    assert alice.client.wait(lambda: foreign in refusals_of(alice, unwanted), timeout_s=WAIT_S)
    vpp.delete_sub(foreign)
    assert alice.client.wait(lambda: foreign not in refusals_of(alice, unwanted), timeout_s=WAIT_S)
    again = alice("POST", f"/orders/{order}/retry")["order"]
    assert again["retry_of"] == order
    alice.client.wait_completed(again["id"], timeout_s=WAIT_S)
    now = alice("GET", url)
    assert (now["cir_bps"], now["transport"], now["in_sync"]) == (20_000_000, "geneve4", True)
    assert [now[end]["outer_vlan"] for end in ("a_end", "z_end")] == [461, 461]
    assert refused(live_stack, "customer", "POST", f"/orders/{order}/retry")[0] == 409
    alice.done("DELETE", url)


def cancel(alice: Api, order: dict[str, Any]) -> None:
    assert alice("POST", f"/orders/{order['id']}/cancel")["order"]["state"] == "pendingCancellation"


def test_a_half_built_line_can_be_cancelled(live_stack: Stack, alice: Api, nina: Api) -> None:
    wanted = an_order(live_stack, vlan=470)
    with router_frozen(nina, "hippo"):
        order = alice("POST", "/vlls", wanted)["order"]
        half = {"rhino": ["a subif", "a vxlan"]}
        assert alice.client.wait(lambda: owned(live_stack, order["vll"]) == half, timeout_s=WAIT_S)
        cancel(alice, order)
        # Until both routers have confirmed, no other line gets its resources.
        assert not alice("POST", "/vlls/validate", wanted)["feasible"]
    alice.wait(f"/orders/{order['id']}", state="cancelled")
    assert alice("GET", f"/vlls/{order['vll']}")["lifecycle"] == "cancelled"
    assert owned(live_stack, order["vll"]) == {}
    assert alice("POST", "/vlls/validate", wanted)["feasible"]
    assert refused(live_stack, "customer", "POST", f"/orders/{order['id']}/cancel")[0] == 409


def test_a_half_done_change_can_be_cancelled(live_stack: Stack, alice: Api, nina: Api) -> None:
    vll = alice.done("POST", "/vlls", an_order(live_stack, vlan=480))
    url, carried = f"/vlls/{vll['id']}", forwarding(live_stack, vll["id"])
    with router_frozen(nina, "hippo"):
        order = alice("PATCH", url, {"a_end": {"outer_vlan": 481}, "z_end": {"outer_vlan": 481}})["order"]
        assert alice.client.wait(
            lambda: f"{PORT}.481" in str(forwarding(live_stack, vll["id"])["rhino"]), timeout_s=WAIT_S
        )
        cancel(alice, order)
    alice.wait(f"/orders/{order['id']}", state="cancelled")
    alice.wait(url, lifecycle="active", in_sync=True)
    assert forwarding(live_stack, vll["id"]) == carried
    alice.done("DELETE", url)


def test_a_half_done_removal_can_be_cancelled(live_stack: Stack, alice: Api, nina: Api) -> None:
    vll = alice.done("POST", "/vlls", an_order(live_stack, vlan=490))
    url, carried = f"/vlls/{vll['id']}", forwarding(live_stack, vll["id"])
    with router_frozen(nina, "hippo"):
        order = alice("DELETE", url)["order"]
        assert alice.client.wait(lambda: set(owned(live_stack, vll["id"])) == {"hippo"}, timeout_s=WAIT_S)
        cancel(alice, order)
    alice.wait(f"/orders/{order['id']}", state="cancelled")
    alice.wait(url, lifecycle="active", in_sync=True)
    assert forwarding(live_stack, vll["id"]) == carried
    alice.done("DELETE", url)


def test_an_order_that_waits_for_approval_is_cancelled_at_once(
    live_stack: Stack, alice: Api, nina: Api
) -> None:
    customer = next(row for row in nina("GET", "/customers")["results"] if row["name"] == "Alpine Dairy")
    wanted = an_order(live_stack, vlan=495)
    nina("PATCH", f"/customers/{customer['id']}", {"approve_up_to_bps": 1})
    try:
        order = alice("POST", "/vlls", wanted)["order"]
    finally:
        nina("PATCH", f"/customers/{customer['id']}", {"approve_up_to_bps": None})
    assert order["state"] == "held"
    assert alice("POST", f"/orders/{order['id']}/cancel")["order"]["state"] == "cancelled"
    assert alice("GET", f"/vlls/{order['vll']}")["lifecycle"] == "cancelled"
    assert alice("POST", "/vlls/validate", wanted)["feasible"]
    assert owned(live_stack, order["vll"]) == {}
