"""Crashes interrupt a customer's frames for a moment (VPP) or not at all (the agent).

These tests come last, because a restarted VPP has lost the ports that its operator did not configure.
"""

import time
from collections.abc import Iterator

import pytest

from devstack.client import Client, NotReached
from devstack.routers.vpp_network import commands_of
from drills.checks.vpp_configuration import configuration
from tests.lab.combinations import Combination
from tests.lab.conftest import Lab
from tests.lab.handmade_network import HandmadeLine
from tests.lab.lab_line import CIR_BPS, WAIT_S, in_service, pass_both_ways
from tests.lab.test_diagnosis import wait_for_verdict
from tests.lab.test_network_taken_over import all_found

PORTAL = ("worker", "sweeper", "beat", "agent-api")
LINE = Combination("geneve6", "dot1q")
STREAM_FRAMES = 300
GAP_S = 0.01


@pytest.fixture(autouse=True)
def line(lab: Lab) -> Iterator[str]:
    with in_service(lab, LINE) as vll:
        yield vll


def forward_again(lab: Lab, router: str) -> None:
    """Wait until VPP forwards again. It keeps nothing: its operator's configuration has ports and routes."""
    lab.stack.family[f"vpp-{router}"].restart()
    isp = lab.stack.isp
    lab.dataplane.vpps[router].configure(*commands_of(isp.router(router), isp))


def test_a_killed_vpp_forwards_again_without_the_portal(lab: Lab) -> None:
    for name in PORTAL:
        lab.stack.family[name].freeze()
    try:
        lab.stack.family["vpp-rhino"].end()
        killed = time.monotonic()
        forward_again(lab, "rhino")
        pass_both_ways(lab, LINE)
        lab.report.append(f"lab {LINE}: VPP killed, frames again after {time.monotonic() - killed:.1f} s")
    finally:
        for name in PORTAL:
            lab.stack.family[name].thaw()


def test_a_dead_vpp_is_named_by_the_diagnosis(lab: Lab, line: str) -> None:
    # A client that does not check whether the VPPs run.
    customer = Client(lab.stack.url, lab.stack.loaded["customer_token"])
    lab.stack.family["vpp-hippo"].end()
    try:
        lab.report.append(f"lab {LINE}: z-vpp-down: {wait_for_verdict(customer, line, 'z-vpp-down')}")
    finally:
        forward_again(lab, "hippo")
    pass_both_ways(lab, LINE)


def test_a_killed_and_restarted_agent_costs_no_frame(lab: Lab) -> None:
    agents = [lab.stack.family[f"agent-{router}"] for router in ("rhino", "hippo")]
    a, z = (lab.customers[where] for where in lab.ends(LINE.transport, LINE.tagging).values())
    z.drain()
    for number in range(STREAM_FRAMES):
        if number == STREAM_FRAMES // 3:
            for agent in agents:
                agent.end()
        if number == 2 * STREAM_FRAMES // 3:
            for agent in agents:
                agent.start()
        packet = number.to_bytes(4, "big").ljust(100, b"\x5a")
        a.send(LINE.on_the_wire(of="a", at="a", packet=packet))
        complaint = z.expect(LINE.on_the_wire(of="a", at="z", packet=packet), timeout_s=1)
        assert complaint is None, f"frame {number} of {STREAM_FRAMES}: {complaint}"
        time.sleep(GAP_S)
    for agent in agents:
        agent.wait_until_ready()
    lab.report.append(f"lab {LINE}: both agents killed and started again, {STREAM_FRAMES} frames, none lost")


def test_lines_that_a_dying_vpp_lost_during_adoption_are_not_re_created(lab: Lab) -> None:
    """VPP has lost the lines, so they are found in another form: the other router lets its ends go."""
    lines, vpps = [HandmadeLine(number, "vxlan4", "dot1q") for number in range(3)], lab.dataplane.vpps
    # A client that does not check whether the VPPs run.
    noc = Client(lab.stack.url, lab.stack.loaded["noc_token"])
    before = lab.traces()
    try:
        for line in lines:
            line.make(vpps)
            line.finish(vpps)
        made, found = configuration(vpps["rhino"]), all_found(noc, lines)
        lab.stack.family["worker"].freeze()
        wanted = [{"found_line": each["id"], "svc_mtu": 1500, "cir_bps": CIR_BPS} for each in found.values()]
        outcomes = noc.adopt_several(wanted)
        lab.stack.family["vpp-hippo"].end()
        lab.stack.family["worker"].thaw()
        forward_again(lab, "hippo")
        for each in outcomes:
            with pytest.raises(NotReached, match="'state': 'failed'"):
                noc.wait_completed(each["order"], timeout_s=WAIT_S)
        assert configuration(vpps["rhino"]) == made
    finally:
        for line in lines:
            line.unmake(vpps)
    assert lab.traces()["rhino"] == before["rhino"]
    pass_both_ways(lab, LINE)
    lab.report.append(
        f"lab: VPP killed while {len(lines)} lines were adopted: none re-created, all let go again"
    )
