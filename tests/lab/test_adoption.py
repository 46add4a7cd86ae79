"""Lines of others are taken over, changed and let go of: no frame is lost, and nothing is made anew."""

import time

import pytest

from devstack.client import Client
from devstack.vpp import Vpp
from tests.lab.combinations import Combination
from tests.lab.conftest import Lab
from tests.lab.lab_line import CIR_BPS, WAIT_S, pass_both_ways
from tests.lab.stream import flowing
from tests.lab.test_in_place import CALM_S, assert_none_lost

LINES = (
    *(
        Combination(wire, "dot1q")
        for wire in ("l2xc", "vxlan4", "vxlan6", "geneve4", "geneve6", "gre4", "gre6")
    ),
    Combination("geneve4", "qinq"),
    Combination("vxlan4", "untagged"),
)
WANTED = {"description": "Taken over", "svc_mtu": 1500, "cir_bps": CIR_BPS}


def let_go(noc: Client, vll: str) -> int:
    """The id of the found line that it is then."""
    before = {line["id"] for line in noc.found_lines()}
    noc.wait_completed(noc.let_go(vll), timeout_s=WAIT_S)
    found: list[int] = []

    def is_found() -> bool:
        found[:] = [
            line["id"]
            for line in noc.found_lines()
            if line["id"] not in before and line["standing"] == "complete"
        ]
        return bool(found)

    assert noc.wait(is_found, timeout_s=WAIT_S), noc.found_lines()
    return found[0]


def take_over(noc: Client, line: int) -> str:
    accepted = noc.adopt(line, **WANTED)
    noc.wait_completed(accepted.order, timeout_s=WAIT_S)
    return accepted.vll


@pytest.mark.parametrize("line", LINES, ids=str)
def test_no_frame_is_lost_while_a_line_is_let_go_adopted_changed_and_let_go(
    lab: Lab, line: Combination
) -> None:
    """Made here and let go of, it is somebody's; taken over, it is policed again."""
    ends = lab.ends(line.transport, line.tagging)
    a, z = (lab.wire(*ends[side]) for side in ("a", "z"))
    customer, noc = lab.stack.client("customer"), lab.stack.client("noc")
    before = lab.traces()
    wanted = {f"{side}_end": line.end(side, lab.stack.port(*ends[side])) for side in ("a", "z")}
    accepted = customer.order(svc_mtu=1500, transport=line.transport, cir_bps=CIR_BPS, **wanted)
    customer.wait_completed(accepted.order, timeout_s=WAIT_S)
    pass_both_ways(lab, line)
    made = lab.traces()
    with flowing(line, a, z) as stream:
        time.sleep(CALM_S)
        stream.mark("let go")
        found = let_go(noc, accepted.vll)
        stream.mark("adopted")
        vll = take_over(noc, found)
        stream.mark("changed")
        customer.wait_completed(customer.change(vll, cir_bps=2 * CIR_BPS), timeout_s=WAIT_S)
        stream.mark("let go again")
        found = let_go(noc, vll)
        time.sleep(CALM_S)
        counts = assert_none_lost(stream)
    assert lab.traces() == made
    vll = take_over(noc, found)
    pass_both_ways(lab, line)
    customer.wait_completed(customer.remove(vll), timeout_s=WAIT_S)
    assert lab.traces() == before
    lab.report.append(f"lab {line}: let go, adopted, changed, let go: {counts}, none lost, nothing made anew")


def by_hand(vpp: Vpp, port: str, vlan: int, *, here: str, there: str) -> None:
    vpp.configure(
        f"create sub-interfaces {port} {vlan} dot1q {vlan} exact-match",
        f"set interface l2 tag-rewrite {port}.{vlan} pop 1",
        f"create vxlan tunnel src {here} dst {there} vni 4242 instance 42",
        f"set interface l2 xconnect {port}.{vlan} vxlan_tunnel42",
        f"set interface l2 xconnect vxlan_tunnel42 {port}.{vlan}",
        f"set interface l2 tag-rewrite {port}.{vlan} pop 1",
        f"set interface tag {port}.{vlan} by-hand",
        f"set interface state {port}.{vlan} up",
    )


def unmade_by_hand(vpp: Vpp, port: str, vlan: int, *, here: str, there: str) -> None:
    vpp.configure(
        f"delete sub-interface {port}.{vlan}",
        f"create vxlan tunnel src {here} dst {there} vni 4242 instance 42 del",
    )


def test_a_line_made_at_the_command_line_is_adopted_and_handed_back_with_its_tag(lab: Lab) -> None:
    line, port = Combination("vxlan4", "dot1q"), "host-cust1"
    ends = lab.ends(line.transport, line.tagging)
    a, z = (lab.wire(*ends[side]) for side in ("a", "z"))
    noc = lab.stack.client("noc")
    places = {
        name: {"here": f"10.255.0.{mine}", "there": f"10.255.0.{other}"}
        for name, mine, other in (("rhino", 1, 2), ("hippo", 2, 1))
    }
    vlans = {"rhino": line.end("a", 0)["outer_vlan"], "hippo": line.end("z", 0)["outer_vlan"]}
    for name, addresses in places.items():
        by_hand(lab.dataplane.vpps[name], port, int(str(vlans[name])), **addresses)
    try:
        pass_both_ways(lab, line)
        made = lab.traces()
        assert noc.wait(
            lambda: [each["standing"] for each in noc.found_lines()] == ["complete"], timeout_s=WAIT_S
        ), noc.found_lines()
        [found] = noc.found_lines()
        assert found["a_end"]["tag"] == "by-hand"
        with flowing(line, a, z) as stream:
            time.sleep(CALM_S)
            stream.mark("adopted")
            vll = take_over(noc, found["id"])
            stream.mark("let go")
            let_go(noc, vll)
            time.sleep(CALM_S)
            counts = assert_none_lost(stream)
        assert lab.traces() == made
        for name, vlan in vlans.items():
            shown = lab.dataplane.vpps[name].show(f"show interface {port}.{vlan} tag")
            assert "by-hand" in shown, shown
    finally:
        for name, addresses in places.items():
            unmade_by_hand(lab.dataplane.vpps[name], port, int(str(vlans[name])), **addresses)
    lab.report.append(f"lab {line} made at the command line: adopted and let go: {counts}, none lost")
