"""The path between two routers fails while all routes and links stay up, and the lines show it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from devstack.client import Client
from devstack.routers.vppsim import SimulatedDataplane
from devstack.stack import Stack
from tests.journeys.test_order_to_traffic import an_order

TRANSPORTS = ("vxlan4", "vxlan6", "geneve4", "geneve6", "gre4", "gre6")


@pytest.fixture
def alice(live_stack: Stack) -> Client:
    return live_stack.client("customer")


@contextmanager
def link_that_carries_nothing(stack: Stack, router: str) -> Iterator[None]:
    assert isinstance(stack.dataplane, SimulatedDataplane)
    file = stack.dataplane.folder / router / "vppsim.json"
    before = file.read_text()
    file.write_text(json.dumps(json.loads(before) | {"links": {"down": True}}))
    try:
        yield
    finally:
        file.write_text(before)


def test_lines_of_every_transport_go_down_and_up_with_their_path(live_stack: Stack, alice: Client) -> None:
    accepted = [
        alice.order(**an_order(live_stack, vlan=vlan, transport=transport, svc_mtu=1500))
        for vlan, transport in enumerate(TRANSPORTS, start=730)
    ]
    for each in accepted:
        alice.wait_completed(each.order, timeout_s=30)

    def all_are(state: str) -> bool:
        lines = [alice.vll(each.vll) for each in accepted]
        return all((line["path"]["state"], line["oper_status"]) == (state, f"op-{state}") for line in lines)

    assert alice.wait(lambda: all_are("up"), timeout_s=60)
    for router in ("rhino", "hippo"):
        with link_that_carries_nothing(live_stack, router):
            assert alice.wait(lambda: all_are("down"), timeout_s=30)
            message = alice.vll(accepted[0].vll)["path"]["message"]
            assert message.startswith("The path between rhino and hippo has been down since ")
        assert alice.wait(lambda: all_are("up"), timeout_s=60)
    for each in accepted:
        alice.wait_completed(alice.remove(each.vll), timeout_s=30)
