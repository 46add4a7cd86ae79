"""A queue in which messages wait and that no worker consumes is an alarm that names it."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from portal.alarms.kinds import Kind
from portal.core import served_queues
from portal.core.broker_client import broker_client
from portal.core.served_queues import QueueNotes, queue_names, served_note
from tests.integration.raised_alarms import alarm_texts, alarms_raised, relay_sends

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Redis as these tests leave it; it has been running for long enough."""
    monkeypatch.setattr(served_queues, "KNOWN_AFTER_S", 0)
    with broker_client(patience_s=5) as client:
        client.flushdb()
        yield client
        client.flushdb()


def test_only_a_queue_with_messages_and_without_a_worker_is_an_alarm(broker: Any) -> None:
    broker.rpush("batch", "a task", "another")
    broker.rpush("telemetry", "a task")
    served_note(["telemetry", "sweepers"])
    assert alarm_texts(Kind.QUEUE_UNSERVED) == ["batch: Tasks waiting: 2. Start a worker for this queue."]
    relay_sends()
    assert alarms_raised(Kind.QUEUE_UNSERVED) == ["No worker takes the tasks of the queue batch"]
    served_note(["batch"])
    assert alarms_raised(Kind.QUEUE_UNSERVED) == []


def test_after_a_start_of_redis_nothing_is_known_for_a_while(
    broker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_queues, "KNOWN_AFTER_S", 10**9)
    broker.rpush("batch", "a task")
    assert alarm_texts(Kind.QUEUE_UNSERVED) == []


def test_a_worker_notes_the_queues_that_it_consumes(broker: Any) -> None:
    """As Celery's heartbeat sends it: at most every ten seconds."""
    queues = SimpleNamespace(consume_from={"batch": None, "netbox": None})
    heart = SimpleNamespace(eventer=SimpleNamespace(app=SimpleNamespace(amqp=SimpleNamespace(queues=queues))))
    noted = QueueNotes()
    noted(sender=heart)
    for name in queue_names():
        broker.rpush(name, "a task")
    assert set(served_queues.unserved_queues()) == set(queue_names()) - {"batch", "netbox"}
    broker.delete("longline:served:batch")
    noted(sender=heart)
    assert "batch" in served_queues.unserved_queues()
