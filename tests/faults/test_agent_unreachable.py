"""Only the orders over an agent that does not answer wait, and their pages say so."""

import httpx
import pytest

from devstack.stack import Stack
from drills.checks.checker import Checker, wait
from drills.checks.customer import Customer, Line, accepted
from tests.faults.continuous_check import Watch
from tests.faults.web_page import log_in

HEALED_WITHIN_S = 15
# By then the pauses between two tries are longer than HEALED_WITHIN_S.
SILENT_TRIES = 4


@pytest.fixture
def page(product: Stack) -> httpx.Client:
    return log_in(product.url, **product.loaded["customer_login"])


def test_a_silent_agent_delays_only_its_own_orders_and_is_updated_as_soon_as_it_answers(
    product: Stack, alice: Customer, checker: Checker, line: Line, page: httpx.Client
) -> None:
    agent = product.family["agent-hippo"]
    with Watch(checker):
        # A frozen agent's port still accepts connections, so calls hang as behind a dropped route.
        agent.freeze()
        try:
            waiting = alice.post(line.order())
            there = alice.post_all([line.order(transport="l2xc", z_end=_end(line, n)) for n in (101, 102)])
            local = checker.require_terminal((a.order for a in accepted(there)), within_s=30)
            assert list(local.values()) == ["completed"] * 2
            assert wait(lambda: _failures(checker) >= SILENT_TRIES, timeout_s=60)
            assert alice.get(f"/api/v1/vlls/{waiting.vll}")["lifecycle"] == "pendingActive"
            assert "Waiting for hippo" in page.get(f"/vlls/{waiting.vll}/").text
        finally:
            agent.thaw()
        checker.require_terminal([waiting.order], within_s=HEALED_WITHIN_S)
    assert alice.get(f"/api/v1/vlls/{waiting.vll}")["lifecycle"] == "active"


def _end(line: Line, vlan: int) -> dict[str, object]:
    return {"port": line.rhino, "tagging": "dot1q", "outer_vlan": vlan, "inner_vlan": None}


def _failures(checker: Checker) -> int:
    query = (
        "SELECT failures FROM vll_routerconvergence c JOIN inventory_router r ON r.id = c.router_id "
        "WHERE r.name = 'hippo'"
    )
    rows = checker.sql(query)
    return int(rows[0][0]) if rows else 0
