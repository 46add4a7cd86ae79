"""A line that VPP polices loses no frame while its rates change, as long as its frames conform."""

import re
import time

import pytest

from tests.lab.combinations import Combination
from tests.lab.conftest import Lab
from tests.lab.lab_line import CIR_BPS, WAIT_S, in_service
from tests.lab.stream import GAP_S, Stream, flowing
from tests.lab.test_in_place import CALM_S, assert_none_lost

LINES = (Combination("vxlan4", "dot1q"), Combination("geneve6", "qinq"), Combination("vxlan6", "untagged"))
# Far above the rate of the stream, and far below.
ABOVE_BPS, BELOW_BPS = 2_000_000, 10_000
BURST_BYTES = 4096


def policed_kbps(lab: Lab, vll: str) -> dict[str, tuple[int, int]]:
    """Return (CIR, CIR + EIR or 0) in kbit/s of the line's policer in the VPP of each side."""
    rates = {}
    for side, router in (("a", "rhino"), ("z", "hippo")):
        shown = lab.dataplane.vpps[router].show("show policer")
        found = re.search(rf"longline:{vll}:{side}\b.*?cir (\d+) eir (\d+) ", shown, re.DOTALL)
        assert found is not None, shown
        rates[side] = (int(found[1]), int(found[2]))
    return rates


def must_be_policed(lab: Lab, line: Combination, vll: str) -> None:
    """Skip a line that the API shows as not policed, and name it in the summary.

    VPP polices with policers, and VLANs before 26.06 with the classifier. VPP 24.02 polices no whole port of
    a host-interface: a line that the API shows there as policed fails these tests.
    """
    shown = lab.stack.client("customer").vll(vll)
    if not shown["policed"]:
        reason = f"NOT POLICED on {lab.dataplane.name}: {shown['a_end']['unpoliced_reason']}"
        lab.report.append(f"lab {line}: {reason}")
        pytest.skip(reason)


def conforming(lab: Lab, vll: str, stream: Stream) -> bool:
    """Return whether the policers count the stream's frames."""
    customer = lab.stack.client("customer")

    def counted() -> bool:
        policing = customer.policing(vll)
        return all((policing[f"{side}_end"]["conform"] or {}).get("packets") for side in ("a", "z"))

    stream.mark("counting")
    return customer.wait(counted, timeout_s=WAIT_S)


@pytest.mark.parametrize("line", LINES, ids=str)
def test_no_frame_is_lost_while_the_rates_of_a_policed_line_change(lab: Lab, line: Combination) -> None:
    ends = lab.ends(line.transport, line.tagging)
    a, z = (lab.wire(*ends[side]) for side in ("a", "z"))
    customer = lab.stack.client("customer")
    steps: list[tuple[dict[str, object], tuple[int, int]]] = [
        ({"cir_bps": 2 * CIR_BPS}, (20_000, 0)),
        ({"cir_bps": ABOVE_BPS}, (2_000, 0)),
        ({"eir_bps": ABOVE_BPS}, (2_000, 4_000)),
        ({"eir_bps": 0, "cir_bps": CIR_BPS}, (10_000, 0)),
    ]
    with in_service(lab, line) as vll:
        must_be_policed(lab, line, vll)
        with flowing(line, a, z) as stream:
            time.sleep(CALM_S)
            for wanted, kbps in steps:
                stream.mark(str(wanted))
                customer.wait_completed(customer.change(vll, **wanted), timeout_s=WAIT_S)
                assert policed_kbps(lab, vll) == {"a": kbps, "z": kbps}
            assert conforming(lab, vll, stream), "the policers counted no frame of the stream"
            counts = assert_none_lost(stream)
    lab.report.append(f"lab {line}: policed, CIR and EIR up and down {len(steps)} times: {counts}, none lost")


@pytest.mark.parametrize("line", [LINES[0], LINES[-1]], ids=str)
def test_the_stream_notices_the_frames_lost_above_the_policed_rate(lab: Lab, line: Combination) -> None:
    ends = lab.ends(line.transport, line.tagging)
    a, z = (lab.wire(*ends[side]) for side in ("a", "z"))
    customer = lab.stack.client("customer")
    with in_service(lab, line) as vll:
        must_be_policed(lab, line, vll)
        with flowing(line, a, z) as stream:
            stream.mark("a rate below the stream's")
            below = customer.change(vll, cir_bps=BELOW_BPS, cbs_bytes=BURST_BYTES)
            customer.wait_completed(below, timeout_s=WAIT_S)
            time.sleep(400 * GAP_S)
            tallies = stream.stop()
    assert all(tally.lost for tally in tallies.values()), "nothing was policed"
