"""Lines over a VPP that is years old are in service, and show which tests and watches it cannot do."""

from devstack.stack import Stack
from tests.journeys.other_releases import BEFORE_24_06, without
from tests.journeys.test_order_to_traffic import an_order

WAIT_S = 60


def test_lines_over_an_earlier_vpp_are_in_service_and_show_its_limits(live_stack: Stack) -> None:
    alice = live_stack.client("customer")

    def ordered(vlan: int, **wanted: object) -> str:
        accepted = alice.order(**an_order(live_stack, vlan=vlan, **wanted))
        alice.wait_completed(accepted.order, timeout_s=WAIT_S)
        return accepted.vll

    def path(vll: str) -> str:
        return str(alice.vll(vll)["path"]["message"])

    before = ordered(740)
    assert alice.wait(lambda: alice.vll(before)["path"]["state"] == "up", timeout_s=WAIT_S)
    with without(live_stack, "hippo", BEFORE_24_06):
        message = "The path between rhino and hippo is not watched: hippo cannot watch paths."
        assert alice.wait(lambda: path(before) == message, timeout_s=WAIT_S), path(before)
        lines = [ordered(741), ordered(742, transport="gre4")]
        for vll in lines:
            [tested] = alice.tests(vll)
            assert (tested["state"], tested["reason"]) == ("not_tested", "router-cannot")
            assert tested["message"].startswith("hippo cannot send test frames")
            assert alice.wait(lambda vll=vll: alice.vll(vll)["policed"], timeout_s=WAIT_S)
            assert path(vll) == message
            assert alice.wait(lambda vll=vll: alice.vll(vll)["oper_status"] == "op-up", timeout_s=WAIT_S)
        assert alice.vll(lines[1])["gre_key"] is None
        assert alice.wait(lambda: alice.vll(before)["in_sync"], timeout_s=WAIT_S)
    assert alice.wait(lambda: alice.vll(before)["path"]["state"] == "up", timeout_s=WAIT_S), path(before)
    for vll in (before, *lines):
        alice.wait_completed(alice.remove(vll), timeout_s=WAIT_S)
