"""Lines with GRE keys when a router's VPP is downgraded to a release without keys, and upgraded again."""

import pytest

from devstack.client import Client
from devstack.stack import Stack
from tests.journeys.other_releases import GRE_KEYS, without
from tests.journeys.test_order_to_traffic import an_order


@pytest.fixture
def alice(live_stack: Stack) -> Client:
    return live_stack.client("customer")


def test_a_line_with_a_key_survives_a_vpp_without_keys(live_stack: Stack, alice: Client) -> None:
    changed, waiting, plain = (
        alice.order(**an_order(live_stack, vlan=vlan, transport=transport, svc_mtu=1500))
        for vlan, transport in ((720, "gre4"), (721, "gre4"), (722, "vxlan4"))
    )
    for each in (changed, waiting, plain):
        alice.wait_completed(each.order, timeout_s=30)

    def are_in_sync(*lines: str) -> bool:
        return all(alice.vll(line)["in_sync"] for line in lines)

    key = alice.vll(waiting.vll)["gre_key"]
    with without(live_stack, "hippo", GRE_KEYS):
        assert alice.wait(
            lambda: are_in_sync(plain.vll) and not are_in_sync(changed.vll) and not are_in_sync(waiting.vll),
            timeout_s=60,
        )
        alice.wait_completed(alice.change(changed.vll, cir_bps=20_000_000), timeout_s=30)
        line = alice.vll(changed.vll)
        assert (line["transport"], line["gre_key"], line["in_sync"]) == ("gre4", None, True)
        assert not are_in_sync(waiting.vll)
    lines = [each.vll for each in (changed, waiting, plain)]
    assert alice.wait(lambda: are_in_sync(*lines), timeout_s=60)
    assert [alice.vll(line)["gre_key"] for line in lines] == [None, key, None]
    for line in lines:
        alice.wait_completed(alice.remove(line), timeout_s=30)
