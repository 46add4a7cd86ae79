"""A frozen Redis delays a worker, and occupies none of its task slots."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from kombu import Connection, Consumer, Message, Queue

from devstack.databases import redis
from devstack.process import Server, free_ports

SOCKET_TIMEOUT_S = 0.2


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Server]:
    (port,) = free_ports(1)
    with redis.running(folder=tmp_path / "redis", log=tmp_path / "redis.log", port=port) as server:
        yield server


@pytest.mark.parametrize("how", ["acknowledged", "rejected", "requeued"])
def test_message_blocked_by_a_frozen_broker_occupies_no_slot(broker: Server, how: str) -> None:
    taken: list[Message] = []
    with Connection(
        broker.url,
        transport=settings.CELERY_BROKER_TRANSPORT,
        transport_options={"socket_timeout": SOCKET_TIMEOUT_S},
    ) as connection:
        queue = Queue("work", channel=connection.default_channel)
        queue.declare()
        with connection.Producer() as producer:
            for number in (1, 2):
                producer.publish({"number": number}, routing_key="work")
        consumer = Consumer(connection, [queue], on_message=taken.append)
        consumer.qos(prefetch_count=1)
        with consumer:
            connection.drain_events(timeout=5)
            broker.child.freeze()
            try:
                with pytest.raises(connection.connection_errors):
                    _let_go(taken[0], how)
            finally:
                broker.child.thaw()
            connection.drain_events(timeout=5)
    assert [message.decode()["number"] for message in taken] == [1, 2]


@pytest.mark.parametrize("how", ["acknowledged", "rejected", "requeued"])
def test_broker_that_disappears_during_a_task_does_not_end_the_worker(broker: Server, how: str) -> None:
    """Neither then, nor when the message's task ends after the worker has a new channel."""
    taken: list[Message] = []
    with Connection(broker.url, transport=settings.CELERY_BROKER_TRANSPORT) as connection:
        channel = connection.default_channel
        queue = Queue("work", channel=channel)
        queue.declare()
        with connection.Producer() as producer:
            producer.publish({"number": 1}, routing_key="work")
        with Consumer(connection, [queue], on_message=taken.append):
            connection.drain_events(timeout=5)
            broker.child.end()
            with pytest.raises(connection.connection_errors):
                connection.drain_events(timeout=5)
            # kombu leaves this state where closing had begun already.
            channel.connection.client = None
            connection.close()
    assert connection.connected is False
    assert channel.connection is None
    _let_go(taken[0], how)


def _let_go(message: Message, how: str) -> None:
    match how:
        case "acknowledged":
            message.ack()
        case "rejected":
            message.reject()
        case "requeued":
            message.requeue()
