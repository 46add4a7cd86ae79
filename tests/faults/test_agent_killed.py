"""An agent that is killed (`kill -9`) between its messages to VPP leaves no orphan and no work undone."""

import threading

import pytest

from devstack.stack import Stack
from drills.checks.checker import Checker
from drills.checks.customer import Customer, Line, accepted
from tests.faults.continuous_check import Watch
from tests.faults.converging_routers import wait_until_converging

ENDED_WITHIN_S = 75


@pytest.mark.parametrize(("lines", "kills"), [(6, 6), pytest.param(24, 16, marks=pytest.mark.release)])
def test_orders_and_removals_survive_agents_that_are_killed_again_and_again(
    product: Stack, alice: Customer, checker: Checker, line: Line, lines: int, kills: int
) -> None:
    """As many lines are removed as ordered; an agent is killed while a worker talks to it."""
    first_answers = accepted(alice.post_all(line.orders(lines)))
    checker.require_completed((answer.order for answer in first_answers), within_s=ENDED_WITHIN_S)
    orders: list[str] = []

    def remove_and_order() -> None:
        for answer, body in zip(first_answers, line.orders(lines), strict=True):
            orders.append(alice.remove(answer.vll))
            orders.append(alice.post(body).order)

    customer = threading.Thread(target=remove_and_order)
    with Watch(checker):
        customer.start()
        for kill in range(kills):
            router = ("rhino", "hippo")[kill % 2]
            wait_until_converging(checker, router)
            product.family[f"agent-{router}"].end()
            product.family[f"agent-{router}"].restart()
        customer.join()
        assert len(orders) == 2 * lines
        checker.require_terminal(orders, within_s=ENDED_WITHIN_S)
