"""No frame is lost while a line is changed in place, or while other lines are added, changed and removed.

The stream itself is tested too: it must notice the frames that are lost when a change interrupts the line.
"""

import time
from collections.abc import Callable

import pytest

from devstack.client import Client
from tests.lab.combinations import Combination
from tests.lab.conftest import Lab
from tests.lab.lab_line import CIR_BPS, WAIT_S, in_service
from tests.lab.stream import Stream, flowing

# Time for some frames before the first change and after the last one.
CALM_S = 0.5
LINES = (Combination("vxlan4", "dot1q"), Combination("geneve6", "qinq"))
FURTHER_LINES = (
    Combination("gre4", "dot1q"),
    Combination("l2xc", "dot1q"),
    Combination("vxlan6", "untagged"),
)


def in_place(customer: Client, vll: str) -> list[tuple[str, Callable[[], None]]]:
    """Return all changes of a line that keep its key, and therefore do not interrupt it."""

    def change(**wanted: object) -> Callable[[], None]:
        return lambda: customer.wait_completed(customer.change(vll, **wanted), timeout_s=WAIT_S)

    return [
        ("svc-mtu up", change(svc_mtu=2000)),
        ("svc-mtu down", change(svc_mtu=1400)),
        ("CIR up", change(cir_bps=2 * CIR_BPS)),
        ("CIR down", change(cir_bps=CIR_BPS)),
        ("description", lambda: customer.describe(vll, "Frames flow meanwhile")),
        ("both", change(cir_bps=3 * CIR_BPS, svc_mtu=1600)),
    ]


def others(lab: Lab, line: Combination) -> list[tuple[str, Callable[[], None]]]:
    """Return the steps of a second line between the same routers, from order to removal.

    It uses the same ports if they allow it.
    """
    customer, ends = lab.stack.client("customer"), lab.ends(line.transport, line.tagging)
    if line.tagging == "untagged":
        ends = {side: (router, "host-cust2") for side, (router, _) in ends.items()}
    vll = ""

    def body(outer: int) -> dict[str, object]:
        more = {"tagging": "dot1q", "outer_vlan": outer, "inner_vlan": None, "exact_match": True}
        return {f"{side}_end": more | {"port": lab.stack.port(*ends[side])} for side in ("a", "z")}

    def add() -> None:
        nonlocal vll
        accepted = customer.order(svc_mtu=1500, transport=line.transport, cir_bps=CIR_BPS, **body(901))
        vll = accepted.vll
        customer.wait_completed(accepted.order, timeout_s=WAIT_S)

    def change(**wanted: object) -> Callable[[], None]:
        return lambda: customer.wait_completed(customer.change(vll, **wanted), timeout_s=WAIT_S)

    def order(what: Callable[[str], str]) -> Callable[[], None]:
        return lambda: customer.wait_completed(what(vll), timeout_s=WAIT_S)

    return [
        ("another is added", add),
        ("another changes in place", change(svc_mtu=1400, cir_bps=2 * CIR_BPS)),
        ("another is suspended", order(customer.suspend)),
        ("another is resumed", order(customer.resume)),
        ("another gets another VLAN", change(**{f"{side}_end": {"outer_vlan": 902} for side in ("a", "z")})),
        ("another is removed", order(customer.remove)),
    ]


def assert_none_lost(stream: Stream) -> str:
    tallies = stream.stop()
    complaints = []
    for of, tally in tallies.items():
        assert tally.sent > 0
        assert tally.overflowed == 0, f"the instrument lost {tally.overflowed} frames of side {of} itself"
        complaints += [f"{of} {number} lost ({stream.during(of, number)})" for number in tally.lost]
        complaints += [f"{of} {number} twice ({stream.during(of, number)})" for number in tally.repeated]
    assert not complaints, complaints
    return ", ".join(f"{tally.sent} frames from {of}" for of, tally in tallies.items())


@pytest.mark.parametrize(
    "line",
    [*LINES, *(pytest.param(line, marks=pytest.mark.release) for line in FURTHER_LINES)],
    ids=str,
)
def test_no_frame_is_lost_while_a_line_changes_in_place_and_others_are_ordered_and_removed(
    lab: Lab, line: Combination
) -> None:
    ends = lab.ends(line.transport, line.tagging)
    a, z = (lab.wire(*ends[side]) for side in ("a", "z"))
    with in_service(lab, line) as vll, flowing(line, a, z) as stream:
        steps = in_place(lab.stack.client("customer"), vll) + others(lab, line)
        time.sleep(CALM_S)
        for what, carry_out in steps:
            stream.mark(what)
            carry_out()
        time.sleep(CALM_S)
        counts = assert_none_lost(stream)
    lab.report.append(f"lab {line}: {', '.join(what for what, _ in steps)}: {counts}, none lost, none twice")


def test_the_stream_notices_the_frames_lost_by_an_interrupting_change(lab: Lab) -> None:
    line = LINES[0]
    ends = lab.ends(line.transport, line.tagging)
    a, z = (lab.wire(*ends[side]) for side in ("a", "z"))
    vpp, interface = lab.dataplane.vpps["rhino"], f"{ends['a'][1]}.{line.end('a', 0)['outer_vlan']}"
    with in_service(lab, line), flowing(line, a, z) as stream:
        time.sleep(CALM_S)
        stream.mark("the access is down")
        vpp.configure(f"set interface state {interface} down")
        time.sleep(CALM_S)
        # The agents notice the difference and repair it.
        tallies = stream.stop()
    # VPP drops frames received on an interface that is down, but still sends from it.
    lost = tallies["a"].lost
    assert lost, f"{tallies['a'].sent} frames, and none missed"
    assert {stream.during("a", number) for number in lost} == {"the access is down"}
