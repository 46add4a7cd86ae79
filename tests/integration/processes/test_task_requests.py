"""Requested tasks become messages after the transaction, and nobody waits for Redis."""

import base64
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from celery import Celery
from django.conf import settings
from django.db import connection, transaction

from devstack.process import LOOPBACK, accepts, free_ports
from portal.events.task_requests import TaskRequest, TaskSender, resend_tasks, send_task, send_tasks, sender
from tests.integration.requested_tasks import requested

pytestmark = pytest.mark.django_db(transaction=True)
TASK = "provisioning.converge_router"
QUEUE = "provisioning"


@contextmanager
def own_broker(port: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A Redis that a test may stop and freeze."""
    arguments = ["--bind", LOOPBACK, "--port", str(port), "--save", "", "--dir", str(folder)]
    process = subprocess.Popen(["redis-server", *arguments], stdout=subprocess.DEVNULL)
    try:
        while not accepts(port):
            assert process.poll() is None
        yield process
    finally:
        process.kill()
        process.wait()


def sender_to(url: str) -> TaskSender:
    """A sender of another process: same settings, but this broker."""
    app = Celery(broker=url, set_as_current=False)
    app.conf.update(
        task_default_queue=QUEUE, broker_transport_options=settings.CELERY_BROKER_TRANSPORT_OPTIONS
    )
    return TaskSender(app)


def numbers_in(url: str) -> list[int]:
    """Return the arguments of the messages in the queue, oldest first."""
    with redis.Redis.from_url(url) as broker:
        found = [json.loads(raw) for raw in reversed(broker.lrange(QUEUE, 0, -1))]
    return [json.loads(base64.b64decode(message["body"]))[0][0] for message in found]


def test_requests_become_messages_after_the_transaction() -> None:
    with transaction.atomic():
        send_task(TASK, 1)
        send_tasks(TASK, [(2,), ("three",)])
        sent_early = requested()
    assert sent_early == [(TASK, [1]), (TASK, [2]), (TASK, ["three"])], "they wait for the commit"
    assert not connection.run_on_commit
    assert requested() == sent_early


def test_rolled_back_transaction_sends_nothing() -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        send_task(TASK, 1)
        raise ZeroDivisionError
    assert requested() == []


def test_equal_requests_that_wait_are_sent_once(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    url = f"redis://{LOOPBACK}:{port}/0"
    waiting = sender_to(url)
    for number in (1, 2, 1, 1):
        waiting.request([TaskRequest(TASK, (number,))])
    assert not waiting.wait_until_sent(0.2), "no broker runs"
    with own_broker(port, tmp_path):
        assert waiting.wait_until_sent(30)
        assert sorted(numbers_in(url)) == [1, 2]


def test_equal_requests_soon_after_a_message_become_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused, resumed = threading.Event(), threading.Event()

    def pause(_: float) -> None:
        paused.set()
        assert resumed.wait(30)

    monkeypatch.setattr("portal.events.task_requests.sleep", pause)
    (port,) = free_ports(1)
    url = f"redis://{LOOPBACK}:{port}/0"
    each = sender_to(url)
    with own_broker(port, tmp_path):
        each.request([TaskRequest(TASK, (1,))])
        assert paused.wait(30)
        assert numbers_in(url) == [1], "the first request waits for nothing"
        for number in (1, 2, 1, 1):
            each.request([TaskRequest(TASK, (number,))])
        assert numbers_in(url) == [1]
        resumed.set()
        assert each.wait_until_sent(30)
        assert numbers_in(url) == [1, 1, 2]


def test_requests_survive_a_restart_of_the_broker(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    url = f"redis://{LOOPBACK}:{port}/0"
    each = sender_to(url)
    with own_broker(port, tmp_path):
        each.request([TaskRequest(TASK, (1,))])
        assert each.wait_until_sent(30)
    each.request([TaskRequest(TASK, (2,))])
    with own_broker(port, tmp_path):
        assert each.wait_until_sent(30)
        assert numbers_in(url) == [2]


def test_frozen_broker_delays_only_the_messages(tmp_path: Path) -> None:
    """It accepts connections and never responds. The callers continue."""
    (port,) = free_ports(1)
    url = f"redis://{LOOPBACK}:{port}/0"
    each = sender_to(url)
    with own_broker(port, tmp_path) as broker:
        each.request([TaskRequest(TASK, (1,))])
        assert each.wait_until_sent(30)
        broker.send_signal(signal.SIGSTOP)
        for number in range(2, 100):
            each.request([TaskRequest(TASK, (number,))])
        assert not each.wait_until_sent(0.5)
        broker.send_signal(signal.SIGCONT)
        assert each.wait_until_sent(60)
        assert set(numbers_in(url)) == set(range(1, 100))


def test_forked_process_sends_its_own_requests() -> None:
    """A web server forks after the import, and a thread does not survive the fork."""
    send_task(TASK, 1)
    assert sender.wait_until_sent(30)
    child = os.fork()
    if child == 0:
        sender.request([TaskRequest(TASK, (2,))])
        os._exit(0 if sender.wait_until_sent(30) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert requested() == [(TASK, [1]), (TASK, [2])]


def test_two_sweeps_at_once_send_each_task_once() -> None:
    calls, sent = [(number,) for number in range(50)], []

    def sweep() -> None:
        sent.extend(resend_tasks(TASK, calls))
        connection.close()

    sweeps = [threading.Thread(target=sweep) for _ in range(2)]
    for each in sweeps:
        each.start()
    for each in sweeps:
        each.join()
    assert sorted(sent) == calls
    assert sorted(args[0] for _, args in requested()) == list(range(50))
