"""A test of a line in service loses only the customer's frames of the interruption that it shows."""

import time

import psycopg
import pytest

from tests.lab.abilities import Ability
from tests.lab.combinations import Combination
from tests.lab.conftest import Lab
from tests.lab.lab_line import WAIT_S, in_service
from tests.lab.stream import GAP_S, flowing

CALM_S = 0.5
# The ends that reported a sample that begins after a given time, and their count of undeliverable frames.
_REPORTED = """
SELECT count(DISTINCT side) FILTER (WHERE from_at > to_timestamp(%(since)s)), coalesce(sum(out_drops), 0)
FROM telemetry_sample WHERE vll_id = %(vll)s
"""


def out_drops(lab: Lab, vll: str) -> int:
    """Return the frames that both ends count as not delivered, once both have reported up to now."""
    parameters = {"vll": vll, "since": time.time()}
    counted: list[int] = []
    with psycopg.connect(lab.stack.portal.services.database_url, autocommit=True) as database:

        def reported() -> bool:
            row = database.execute(_REPORTED, parameters).fetchone()
            counted[:] = map(int, row or (0, 0))
            return counted[0] == 2

        assert lab.stack.client("customer").wait(reported, timeout_s=WAIT_S), "the ends report no samples"
    return counted[1]


@pytest.mark.parametrize("line", [Combination("vxlan6", "dot1q"), Combination("gre4", "untagged")], ids=str)
def test_a_line_loses_only_the_frames_of_the_interruption_that_is_shown(lab: Lab, line: Combination) -> None:
    lab.needs(Ability.ACTIVATION_TESTS)
    ends, customer = lab.ends(line.transport, line.tagging), lab.stack.client("customer")
    a, z = (lab.wire(*ends[side]) for side in ("a", "z"))
    with in_service(lab, line) as vll, flowing(line, a, z) as stream:
        time.sleep(CALM_S)
        stream.mark("the test")
        accepted = customer.test(vll)
        customer.wait_completed(accepted["order"], timeout_s=WAIT_S)
        stream.mark("after it")
        time.sleep(CALM_S)
        found = customer.tests(vll)[0]
        tallies = stream.stop()
        assert out_drops(lab, vll) == 0, "test frames count as the customer's"
    assert (found["id"], found["state"], found["reason"]) == (accepted["id"], "passed", None)
    for of, tally in tallies.items():
        assert tally.lost, "nothing was interrupted"
        assert {stream.during(of, number) for number in tally.lost} == {"the test"}
        assert not tally.repeated
        # The sender left at least this gap before each of the frames.
        assert (len(tally.lost) - 1) * GAP_S * 1000 <= found["interruption_ms"]
    lost = ", ".join(f"{len(tally.lost)} of {tally.sent} from {of}" for of, tally in tallies.items())
    lab.report.append(f"lab {line}: tested in service, {found['interruption_ms']} ms, lost {lost}")
