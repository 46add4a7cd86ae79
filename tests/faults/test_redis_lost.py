"""Redis only carries hints to hurry: a flushed, absent or frozen Redis costs time and no order."""

import threading
import time

import pytest
import redis

from devstack.stack import Stack
from drills.checks.checker import Checker
from drills.checks.customer import Customer, Line, Response
from tests.faults.continuous_check import Watch

ENDED_WITHIN_S = 75


@pytest.mark.parametrize("orders", [10, pytest.param(30, marks=pytest.mark.release)])
def test_orders_survive_a_broker_that_forgets_everything(
    product: Stack, alice: Customer, checker: Checker, line: Line, orders: int
) -> None:
    answers: list[Response] = []
    ordering = threading.Thread(target=lambda: answers.extend(alice.post_all(line.orders(orders), at_once=4)))
    with Watch(checker), redis.Redis.from_url(product.portal.services.redis_url) as broker:
        ordering.start()
        while ordering.is_alive():
            broker.flushall()
            time.sleep(0.2)
        broker.flushall()
        assert [answer.status for answer in answers] == [202] * orders
        checker.require_completed((a.order for a in answers), within_s=ENDED_WITHIN_S)


@pytest.mark.parametrize("away_s", [15, pytest.param(60, marks=pytest.mark.release)])
@pytest.mark.parametrize("how", ["stopped", "frozen"])
def test_orders_are_accepted_while_the_broker_is_away_and_completed_when_it_is_back(
    product: Stack, alice: Customer, checker: Checker, line: Line, how: str, away_s: int
) -> None:
    broker = product.portal.services.redis.child
    with Watch(checker):
        if how == "stopped":
            broker.end()
        else:
            broker.freeze()
        since = time.monotonic()
        try:
            answers = alice.post_all(line.orders(12))
            assert [answer.status for answer in answers] == [202] * 12
            assert time.monotonic() - since < away_s, "accepting an order waited for the broker"
            time.sleep(max(0, since + away_s - time.monotonic()))
        finally:
            if how == "stopped":
                broker.restart()
            else:
                broker.thaw()
        checker.require_completed((a.order for a in answers), within_s=ENDED_WITHIN_S)
