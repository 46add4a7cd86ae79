"""`kill -9` of an agent among its messages to VPP: no orphan stays, and nothing is left undone."""

import random
import threading
import time

import pytest

from devstack.stack import Stack
from drills.checks.checker import Checker
from drills.checks.customer import Answer, Customer, Line
from tests.faults.continuous_check import Watch

ENDED_WITHIN_S = 75


@pytest.mark.parametrize(("orders", "kills"), [(12, 4), pytest.param(24, 6, marks=pytest.mark.release)])
def test_orders_and_removals_survive_agents_that_are_killed_again_and_again(
    product: Stack, alice: Customer, checker: Checker, line: Line, orders: int, kills: int
) -> None:
    chance = random.Random(11)
    answers: list[Answer] = []
    removals: list[str] = []

    def order_and_remove() -> None:
        answers.extend(alice.post_all(line.orders(orders), at_once=4))
        removals.extend(alice.remove(answer.vll) for answer in answers[::2])

    customer = threading.Thread(target=order_and_remove)
    with Watch(checker):
        customer.start()
        for name in ("agent-rhino", "agent-hippo") * (kills // 2):
            time.sleep(chance.uniform(0.1, 0.8))
            product.family[name].end()
            product.family[name].restart()
        customer.join()
        assert [answer.status for answer in answers] == [202] * orders
        assert len(removals) == orders // 2
        checker.require_terminal([*(a.order for a in answers), *removals], within_s=ENDED_WITHIN_S)
