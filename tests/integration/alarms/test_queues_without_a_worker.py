"""A queue in which messages wait and that no worker consumes is an alarm that names it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from django.conf import settings

from portal.alarms.kinds import Kind
from portal.core import background_work
from portal.core.background_work import QueueNotes, queue_names, served_note
from portal.core.redis_servers import broker_client
from tests.integration.raised_alarms import alarm_texts, alarms_raised

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Redis as these tests leave it; it has been running for long enough."""
    monkeypatch.setattr(background_work, "KNOWN_AFTER_S", 0)
    with broker_client(patience_s=5) as client:
        client.flushdb()
        yield client
        client.flushdb()


def test_only_a_queue_with_messages_and_without_a_worker_is_an_alarm(broker: Any) -> None:
    broker.rpush("batch", "a task", "another")
    broker.rpush("telemetry", "a task")
    served_note(["telemetry", "sweepers"])
    assert alarm_texts(Kind.QUEUE_UNSERVED) == ["batch: Tasks waiting: 2. Start a worker for this queue."]
    assert alarms_raised(Kind.QUEUE_UNSERVED) == ["No worker takes the tasks of the queue batch"]
    served_note(["batch"])
    assert alarms_raised(Kind.QUEUE_UNSERVED) == []


def test_after_a_start_of_redis_nothing_is_known_for_a_while(
    broker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_work, "KNOWN_AFTER_S", 10**9)
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
    assert set(background_work.unserved_queues()) == set(queue_names()) - {"batch", "netbox"}
    broker.delete("longline:served:batch")
    noted(sender=heart)
    assert "batch" in background_work.unserved_queues()


WORKER = """
from time import sleep
from celery import Celery

app = Celery("without_records", broker={broker!r}, fixups=[])
app.conf.worker_prefetch_multiplier = 1

@app.task(name="busy")
def busy():
    sleep(60)
"""


@pytest.fixture
def worker_without_records(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A busy worker of the queue batch that records no queues, like the workers of a release before."""
    (tmp_path / "without_records.py").write_text(dedent(WORKER.format(broker=settings.CELERY_BROKER_URL)))
    command = [sys.executable, "-m", "celery", "--app", "without_records", "worker", "--queues", "batch"]
    options = ["--pool", "threads", "--concurrency", "1", "--hostname", "old@here", "--loglevel", "ERROR"]
    worker = subprocess.Popen([*command, *options], cwd=tmp_path)
    yield worker
    worker.kill()
    worker.wait()


def test_a_worker_that_records_nothing_serves_its_queue_as_long_as_it_runs(
    broker: Any, worker_without_records: subprocess.Popen[bytes]
) -> None:
    """During an upgrade, workers of the previous release run next to those of the new one."""
    app = Celery("sender", broker=settings.CELERY_BROKER_URL, set_as_current=False)
    for _ in range(5):
        app.send_task("busy", queue="batch")
    until = monotonic() + 60
    while app.control.inspect(timeout=1).active_queues() is None:
        assert monotonic() < until, "the worker did not start"
    while broker.llen("batch") > 3:
        assert monotonic() < until, "the worker takes no tasks"
        sleep(0.1)
    assert alarm_texts(Kind.QUEUE_UNSERVED) == []
    worker_without_records.kill()
    worker_without_records.wait()
    broker.delete("longline:served:batch")
    [alarm] = alarm_texts(Kind.QUEUE_UNSERVED)
    assert alarm.startswith("batch: Tasks waiting: ")
