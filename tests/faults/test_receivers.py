"""Webhook receivers that are down, slow or hostile delay no order, and get each event exactly once."""

import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import redis

from devstack.stack import Stack
from drills.checks.checker import Checker, wait
from drills.checks.customer import Customer, Line, Response
from tests.faults.converging_routers import POLL_S
from tests.integration.notifications.receiver import Receiver, receiving

CAUGHT_UP_WITHIN_S = 240
NOTIFIED_WITHIN_S = 60
EVENTS = """
SELECT count(*) FROM events_event WHERE order_id = ANY(%s::uuid[])
    AND kind IN ('order.acknowledged', 'order.inProgress', 'order.completed')
"""
UNDELIVERED = "SELECT count(*) FROM notifications_delivery WHERE webhook_id = %s AND state <> 'delivered'"
PENDING = "SELECT count(*) FROM events_event WHERE untold"
TYPES = ["order.accepted", "order.started", "order.completed"]


@contextmanager
def webhook_to(alice: Customer, url: str) -> Iterator[int]:
    """Yield the id of a webhook to this address, and remove the webhook afterwards."""
    webhook = alice.add_webhook(url, TYPES)
    try:
        yield webhook
    finally:
        alice.remove_webhook(webhook)


@contextmanager
def silent() -> Iterator[str]:
    """Yield an address that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


def orders_of(answers: list[Response]) -> list[str]:
    assert {answer.status for answer in answers} == {202}
    return [answer.order for answer in answers]


def test_silent_receivers_delay_neither_orders_nor_other_receivers(
    product: Stack, alice: Customer, checker: Checker, line: Line
) -> None:
    with ExitStack() as resources:
        receiver = resources.enter_context(receiving())
        good = resources.enter_context(webhook_to(alice, receiver.url))
        silent_url = resources.enter_context(silent())
        for number in range(6):
            resources.enter_context(webhook_to(alice, f"{silent_url}{number}"))
        orders = orders_of(alice.post_all(line.orders(8)))
        checker.require_completed(orders, within_s=NOTIFIED_WITHIN_S)
        ((events,),) = checker.sql(EVENTS, orders)
        assert wait(lambda: len(receiver.got) >= events, timeout_s=NOTIFIED_WITHIN_S)
        assert wait(lambda: checker.sql(UNDELIVERED, good) == [(0,)], timeout_s=NOTIFIED_WITHIN_S)
        assert len({got.headers["webhook-id"] for got in receiver.got}) == events


@pytest.mark.parametrize("at_once", [2, pytest.param(6, marks=pytest.mark.release)])
def test_each_event_arrives_once_although_processes_are_killed(
    product: Stack, alice: Customer, checker: Checker, line: Line, at_once: int
) -> None:
    """The receiver is down at first. Notifying and sending processes are killed at work; Redis is flushed."""
    with receiving() as receiver, webhook_to(alice, receiver.url) as webhook:
        # Three messages are refused once each: one refused twice would wait longer than this test runs.
        receiver.refused = 3
        orders: list[str] = []

        def pending() -> bool:
            return checker.sql(PENDING) != [(0,)]

        def undelivered() -> bool:
            return checker.sql(UNDELIVERED, webhook) != [(0,)]

        kills = {"sweeper": pending, "messenger": undelivered, "doubtful-messenger": undelivered}
        with redis.Redis.from_url(product.portal.services.redis_url) as broker:
            for name, has_work in kills.items():
                orders += orders_of(alice.post_all(line.orders(at_once)))
                assert wait(has_work, timeout_s=NOTIFIED_WITHIN_S, poll_every_s=POLL_S)
                product.family[name].end()
                broker.flushall()
                product.family[name].restart()
        checker.require_completed(orders, within_s=CAUGHT_UP_WITHIN_S)
        ((events,),) = checker.sql(EVENTS, orders)

        def caught_up() -> bool:
            delivered = "SELECT count(*) FROM notifications_delivery WHERE webhook_id = %s"
            return (
                checker.sql(PENDING) == [(0,)]
                and checker.sql(delivered, webhook) == [(events,)]
                and checker.sql(UNDELIVERED, webhook) == [(0,)]
            )

        assert wait(caught_up, timeout_s=CAUGHT_UP_WITHIN_S), _state(checker, webhook, receiver)
        # Repeated messages have one id, by which a receiver recognises them.
        assert len({got.headers["webhook-id"] for got in receiver.got}) == events
        assert len({got.body for got in receiver.got}) == events


def _state(checker: Checker, webhook: int, receiver: Receiver) -> dict[str, Any]:
    deliveries = checker.sql("SELECT state FROM notifications_delivery WHERE webhook_id = %s", webhook)
    return {
        "pending": checker.sql(PENDING),
        "deliveries": Counter(state for (state,) in deliveries),
        "got": len(receiver.got),
    }
