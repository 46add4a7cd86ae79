"""A line is let go, adopted and changed without loss of a frame, and no object in VPP is re-created.

Lines that were made by hand: test_network_taken_over.py.
"""

import time

import pytest

from devstack.client import Client
from tests.lab.combinations import Combination
from tests.lab.conftest import Lab
from tests.lab.lab_line import CIR_BPS, WAIT_S, order, pass_both_ways
from tests.lab.stream import flowing
from tests.lab.test_in_place import CALM_S, assert_none_lost

LINES = (Combination("l2xc", "dot1q"), Combination("vxlan6", "untagged"))
WANTED = {"description": "Taken over", "svc_mtu": 1500, "cir_bps": CIR_BPS}


def let_go(noc: Client, vll: str) -> int:
    """Let the line go, and return the id under which the portal finds it as a foreign line."""
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
    """After it was let go the line is foreign; once it is adopted, VPP polices it again."""
    ends = lab.ends(line.transport, line.tagging)
    a, z = (lab.wire(*ends[side]) for side in ("a", "z"))
    customer, noc = lab.stack.client("customer"), lab.stack.client("noc")
    before = lab.traces()
    accepted = order(lab, line, svc_mtu=1500)
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
    lab.report.append(f"lab {line}: let go, adopted, changed, let go: {counts}, none lost, none re-created")
