"""VPP crashes and loses its state: its agent re-creates everything, even while the portal is down."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from devstack.stack import Stack
from drills.checks.checker import Checker, wait
from drills.checks.customer import CONCURRENT, Customer, Line
from drills.checks.expected_configuration import flaws
from drills.checks.vpptestctl import VppRefused

PORTAL = ("worker", "sweeper", "beat", "agent-api")
REAPPLIED_WITHIN_S = 30


def test_the_lines_of_a_crashed_vpp_are_down_and_the_outage_is_counted(
    product: Stack, alice: Customer, checker: Checker, line: Line
) -> None:
    answer = alice.post(line.order())
    checker.require_completed([answer.order], within_s=60)

    def status() -> str:
        [(found,)] = checker.sql("SELECT oper_status FROM vll_vll WHERE id = %s", answer.vll)
        return str(found)

    assert wait(lambda: status() == "op-up", timeout_s=30), status()
    vpp = product.family["vppsim-rhino"]
    vpp.end()
    try:
        assert wait(lambda: status() == "op-down", timeout_s=30), status()
    finally:
        vpp.restart()
    assert wait(lambda: status() == "op-up", timeout_s=30), status()
    [(down_s,)] = checker.sql(
        "SELECT extract(epoch FROM sum(ended_at - began_at)) FROM telemetry_operinterval "
        "WHERE vll_id = %s AND status = 'op-down'",
        answer.vll,
    )
    assert down_s > 0
    checker.require_completed([alice.remove(answer.vll)], within_s=60)


# 50 lines put 85 ends on rhino, more than the 64 messages that an agent sends before it reads a response.
@pytest.mark.parametrize(("local", "of_all_kinds"), [(2, 8), pytest.param(32, 18, marks=pytest.mark.release)])
def test_the_agent_restores_all_vlls_of_a_crashed_vpp_without_the_portal(
    product: Stack, alice: Customer, checker: Checker, line: Line, local: int, of_all_kinds: int
) -> None:
    bodies = [*(line.local_order() for _ in range(local)), *line.orders(of_all_kinds)]
    answers = alice.post_all(bodies)
    assert [answer.status for answer in answers] == [202] * len(bodies)
    checker.require_completed((answer.order for answer in answers), within_s=300)
    checker.require_rest(within_s=60)
    booted = (
        "SELECT o.vpp_booted_at FROM inventory_observedrouter o "
        "JOIN inventory_router r ON r.id = o.router_id WHERE r.name = 'rhino'"
    )
    [before] = checker.sql(booted)
    wanted = checker.wanted()
    vpp = product.family["vppsim-rhino"]

    def whole() -> bool:
        try:
            return not flaws(wanted, checker.configs())
        except VppRefused:
            return False

    for name in PORTAL:
        product.family[name].freeze()
    try:
        vpp.end()
        vpp.restart()
        assert wait(whole, timeout_s=REAPPLIED_WITHIN_S), flaws(wanted, checker.configs())[:10]
    finally:
        for name in PORTAL:
            product.family[name].thaw()
    assert wait(lambda: checker.sql(booted) != [before], timeout_s=30), "the portal never learned of it"
    with ThreadPoolExecutor(CONCURRENT) as clients:
        removals = list(clients.map(alice.remove, [answer.vll for answer in answers]))
    checker.require_completed(removals, within_s=300)
