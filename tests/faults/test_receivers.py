"""Receivers of webhooks that are down, slow or hostile: orders are unaffected, and caught up exactly once."""

import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import redis

from devstack.stack import Stack
from drills.checks.checker import Checker, wait
from drills.checks.customer import Answer, Customer, Line
from tests.faults.converging_routers import LOOK_EVERY_S
from tests.integration.notifications.receiver import Receiver, receiving

CAUGHT_UP_WITHIN_S = 240
TOLD_WITHIN_S = 60
EVENTS = """
SELECT count(*) FROM events_event WHERE order_id = ANY(%s::uuid[])
    AND kind IN ('order.acknowledged', 'order.inProgress', 'order.completed')
"""
UNDELIVERED = "SELECT count(*) FROM notifications_delivery WHERE webhook_id = %s AND state <> 'delivered'"
UNTOLD = "SELECT count(*) FROM events_event WHERE untold"
TYPES = ["order.accepted", "order.started", "order.completed"]


@contextmanager
def told_at(alice: Customer, url: str) -> Iterator[int]:
    """A webhook there, until the block ends; its id."""
    webhook = alice.add_webhook(url, TYPES)
    try:
        yield webhook
    finally:
        alice.remove_webhook(webhook)


@contextmanager
def silent() -> Iterator[str]:
    """An address that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


def orders_of(answers: list[Answer]) -> list[str]:
    assert {answer.status for answer in answers} == {202}
    return [answer.order for answer in answers]


def test_silent_receivers_hold_up_neither_orders_nor_other_receivers(
    product: Stack, alice: Customer, checker: Checker, line: Line
) -> None:
    with ExitStack() as until_the_end:
        receiver = until_the_end.enter_context(receiving())
        good = until_the_end.enter_context(told_at(alice, receiver.url))
        nowhere = until_the_end.enter_context(silent())
        for number in range(6):
            until_the_end.enter_context(told_at(alice, f"{nowhere}{number}"))
        orders = orders_of(alice.post_all(line.orders(8)))
        checker.require_completed(orders, within_s=TOLD_WITHIN_S)
        ((events,),) = checker.sql(EVENTS, orders)
        assert wait(lambda: len(receiver.got) >= events, timeout_s=TOLD_WITHIN_S)
        assert wait(lambda: checker.sql(UNDELIVERED, good) == [(0,)], timeout_s=TOLD_WITHIN_S)
        assert len({got.headers["webhook-id"] for got in receiver.got}) == events


@pytest.mark.parametrize("at_once", [2, pytest.param(6, marks=pytest.mark.release)])
def test_nothing_is_lost_or_told_twice_whatever_is_killed(
    product: Stack, alice: Customer, checker: Checker, line: Line, at_once: int
) -> None:
    """The receiver is down at first. Who tells and who sends is killed with work to do, and Redis forgets."""
    with receiving() as receiver, told_at(alice, receiver.url) as webhook:
        # Three messages, once each: one that is refused twice waits for longer than this test does.
        receiver.refused = 3
        orders: list[str] = []

        def untold() -> bool:
            return checker.sql(UNTOLD) != [(0,)]

        def undelivered() -> bool:
            return checker.sql(UNDELIVERED, webhook) != [(0,)]

        kills = {"sweeper": untold, "messenger": undelivered, "doubtful-messenger": undelivered}
        with redis.Redis.from_url(product.portal.services.redis_url) as broker:
            for name, has_work in kills.items():
                orders += orders_of(alice.post_all(line.orders(at_once)))
                assert wait(has_work, timeout_s=TOLD_WITHIN_S, look_every_s=LOOK_EVERY_S)
                product.family[name].end()
                broker.flushall()
                product.family[name].restart()
        checker.require_completed(orders, within_s=CAUGHT_UP_WITHIN_S)
        ((events,),) = checker.sql(EVENTS, orders)

        def caught_up() -> bool:
            delivered = "SELECT count(*) FROM notifications_delivery WHERE webhook_id = %s"
            return (
                checker.sql(UNTOLD) == [(0,)]
                and checker.sql(delivered, webhook) == [(events,)]
                and checker.sql(UNDELIVERED, webhook) == [(0,)]
            )

        assert wait(caught_up, timeout_s=CAUGHT_UP_WITHIN_S), _state(checker, webhook, receiver)
        # Whatever came more than once came under one id, by which a receiver knows it.
        assert len({got.headers["webhook-id"] for got in receiver.got}) == events
        assert len({got.body for got in receiver.got}) == events


def _state(checker: Checker, webhook: int, receiver: Receiver) -> dict[str, Any]:
    deliveries = checker.sql("SELECT state FROM notifications_delivery WHERE webhook_id = %s", webhook)
    return {
        "untold": checker.sql(UNTOLD),
        "deliveries": Counter(state for (state,) in deliveries),
        "got": len(receiver.got),
    }
