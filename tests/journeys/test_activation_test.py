"""A line is tested with frames before it is in service, and rejected if it does not carry them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from devstack.client import Client, NotReached
from devstack.routers.vppsim import SimulatedDataplane
from devstack.stack import Stack
from tests.journeys.test_order_to_traffic import an_order


@pytest.fixture
def alice(live_stack: Stack) -> Client:
    return live_stack.client("customer")


@contextmanager
def links_that_carry(stack: Stack, router: str, **links: int) -> Iterator[None]:
    """Reduce the MTU of a router's links below the declared one for the block."""
    assert isinstance(stack.dataplane, SimulatedDataplane)
    file = stack.dataplane.folder / router / "vppsim.json"
    before = file.read_text()
    file.write_text(json.dumps(json.loads(before) | {"links": links}))
    try:
        yield
    finally:
        file.write_text(before)


@pytest.mark.parametrize("transport", ["vxlan4", "vxlan6", "geneve4", "geneve6", "gre4", "gre6"])
def test_every_transport_is_tested_up_to_the_largest_promised_frame(
    live_stack: Stack, alice: Client, transport: str
) -> None:
    accepted = alice.order(**an_order(live_stack, vlan=700, transport=transport, svc_mtu=8000))
    alice.wait_completed(accepted.order, timeout_s=30)
    [test] = alice.tests(accepted.vll)
    assert (test["state"], test["frame"], test["largest_passed"]) == ("passed", 8014, 8014)
    for counts in test["directions"].values():
        assert [(count["sent"], count["received"]) for count in counts] == [(100, 100)] * 7
    timed = test["round_trip_us"]
    assert timed["sent"] == timed["received"] == 5
    assert 0 < timed["min"] <= timed["avg"] <= timed["max"]
    assert [link["ip_mtu"] for link in test["path"]["links"] if not link["backup"]] == [9000]
    alice.wait_completed(alice.remove(accepted.vll), timeout_s=30)


@pytest.mark.parametrize("transport", ["gre4", "gre6"])
def test_gre_lines_between_the_same_addresses_are_tested_and_removed_independently(
    live_stack: Stack, alice: Client, transport: str
) -> None:
    accepted = [
        alice.order(**an_order(live_stack, vlan=vlan, transport=transport, svc_mtu=8000))
        for vlan in (710, 711, 712)
    ]
    for each in accepted:
        alice.wait_completed(each.order, timeout_s=30)
    lines = [alice.vll(each.vll) for each in accepted]
    assert len({line["gre_key"] for line in lines} - {None}) == 3
    for side in ("a_end", "z_end"):
        assert len({line[side]["tunnel_address"] for line in lines}) == 1
    assert {alice.tests(each.vll)[0]["state"] for each in accepted} == {"passed"}
    for each in accepted:
        alice.wait_completed(alice.remove(each.vll), timeout_s=30)


@pytest.mark.parametrize("links", [{"mtu": 8000}, {"fragments_over": 8000}], ids=["black hole", "fragments"])
def test_the_next_order_finds_a_link_with_a_smaller_mtu_than_declared(
    live_stack: Stack, alice: Client, links: dict[str, int]
) -> None:
    with links_that_carry(live_stack, "hippo", **links):
        accepted = alice.order(**an_order(live_stack, vlan=701, transport="vxlan4", svc_mtu=8900))
        # The figure adds 20 bytes of IPv4, 8 of UDP and 8 of VXLAN.
        with pytest.raises(
            NotReached, match=f"those of 8,914 do not; the largest that passed had {8000 - 36:,}: a"
        ):
            alice.wait_completed(accepted.order, timeout_s=30)
    [test] = alice.tests(accepted.vll)
    assert (test["state"], test["reason"]) == ("failed", "large-frames-lost")
    assert (test["frame"], test["largest_passed"]) == (8914, 8000 - 36)
    assert alice.vll(accepted.vll)["lifecycle"] == "cancelled"
