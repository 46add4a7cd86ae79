"""Manual changes in VPP: the agent repairs or reports changes of its objects, and leaves others alone."""

from collections.abc import Callable

import pytest

from devstack.stack import Stack
from drills.checks.checker import Checker, wait
from drills.checks.customer import Customer, Line, Response
from drills.checks.expected_configuration import flaws
from drills.checks.vpptestctl import VppTestctl

NOTICED_WITHIN_S = 60


@pytest.fixture
def active(alice: Customer, checker: Checker, line: Line) -> Response:
    answer = alice.post(line.order(transport="vxlan4"))
    checker.require_completed([answer.order], within_s=30)
    return answer


def access_of(checker: Checker, vll: str) -> str:
    """Return the sub-interface of the VLL's end on Rhino."""
    [end] = [end for end in checker.wanted() if str(end.vll) == vll and end.router == "rhino"]
    access = end.access(checker.vpps["rhino"].config())
    assert access is not None
    return str(access["name"])


@pytest.mark.parametrize("edit", [VppTestctl.down, VppTestctl.disconnect, VppTestctl.delete_sub])
def test_a_changed_object_of_the_agent_is_repaired_and_reported(
    checker: Checker, active: Response, edit: Callable[[VppTestctl, str], None]
) -> None:
    vpp = checker.vpps["rhino"]
    edit(vpp, access_of(checker, active.vll))
    repaired = wait(lambda: not flaws(checker.wanted(), checker.configs()), timeout_s=NOTICED_WITHIN_S)
    assert repaired, flaws(checker.wanted(), checker.configs())
    drifts = "SELECT data->>'detail' FROM events_event WHERE kind = 'router.end.drift' AND data->>'vll' = %s"
    last = "SELECT at, kind, data FROM events_event WHERE kind LIKE 'router.%%' ORDER BY id DESC LIMIT 5"
    assert wait(lambda: bool(checker.sql(drifts, active.vll)), timeout_s=NOTICED_WITHIN_S), checker.sql(last)


def test_drift_that_cannot_be_repaired_is_shown_and_foreign_objects_are_left_alone(
    product: Stack, alice: Customer, checker: Checker, active: Response, line: Line
) -> None:
    vpp, agent = checker.vpps["rhino"], product.family["agent-rhino"]
    access = access_of(checker, active.vll)
    [vlan] = [end.outer for end in checker.wanted() if str(end.vll) == active.vll and end.router == "rhino"]
    # Frozen, because the agent would repair the change before the next command.
    agent.freeze()
    try:
        vpp.delete_sub(access)
        foreign = vpp.add_sub(line.interface, vlan)
    finally:
        agent.thaw()
    before = vpp.config().named(foreign)

    def shown() -> bool:
        return not alice.get(f"/api/v1/vlls/{active.vll}")["in_sync"]

    assert wait(shown, timeout_s=NOTICED_WITHIN_S), "the portal calls a VLL in sync that has lost an end"
    events = checker.sql("SELECT kind FROM events_event WHERE vll_id = %s", active.vll)
    assert ("vll.drift",) in events
    assert vpp.config().named(foreign) == before
    vpp.delete_sub(foreign)
    assert wait(lambda: not shown(), timeout_s=NOTICED_WITHIN_S)
