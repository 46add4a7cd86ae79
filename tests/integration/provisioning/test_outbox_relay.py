"""The relay process delivers every outbox row to the broker, through restarts of its services."""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from django.conf import settings
from django.db import connection, transaction

from devstack.tcp_ports import LOOPBACK, accepts, free_ports
from portal.celery import app
from portal.core import clock
from portal.events.models import Outbox
from portal.events.outbox import send_task
from provisioning.outbox_relay import relay_batch
from provisioning.task_publisher import Publisher
from tests.integration.database_url import database_url

pytestmark = pytest.mark.django_db(transaction=True)
QUEUE = "provisioning"


@pytest.fixture
def broker() -> Iterator[redis.Redis]:
    """The broker of this run, emptied."""
    client = redis.Redis.from_url(settings.CELERY_BROKER_URL)
    client.delete(QUEUE)
    yield client
    client.close()


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    each = Publisher(app)
    yield each
    each.close()


def messages(broker: redis.Redis) -> list[tuple[str, list[int]]]:
    """(task, args) of what waits in the queue, oldest first."""
    found = []
    for raw in reversed(broker.lrange(QUEUE, 0, -1)):
        message = json.loads(raw)
        args = json.loads(base64.b64decode(message["body"]))[0]
        found.append((message["headers"]["task"], args))
    return found


def send(*numbers: int) -> None:
    for number in numbers:
        with transaction.atomic():
            send_task("provisioning.converge_router", number, now=clock.now())


def eventually(condition: Callable[[], bool], timeout_s: float = 30) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.05)


def unpublished() -> int:
    return Outbox.objects.filter(published_at__isnull=True).count()


@pytest.fixture
def start_relay(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start `manage.py relay` on the test database; it is stopped afterwards."""
    started: list[subprocess.Popen[bytes]] = []

    def start(redis_url: str = settings.CELERY_BROKER_URL) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "relay"],
            env=os.environ | {"DATABASE_URL": database_url(), "REDIS_URL": redis_url},
            cwd=settings.BASE_DIR,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


@contextmanager
def own_broker(port: int, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A Redis that a test may stop and freeze: (its process, its URL)."""
    arguments = ["--bind", LOOPBACK, "--port", str(port), "--save", "", "--dir", str(folder)]
    process = subprocess.Popen(["redis-server", *arguments], stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: accepts(port))
        yield process, f"redis://{LOOPBACK}:{port}/0"
    finally:
        process.kill()
        process.wait()


def test_rows_become_messages_by_name_and_ids(broker: redis.Redis, publisher: Publisher) -> None:
    send(1, 2)
    assert relay_batch(publisher, now=clock.now()) == 2
    assert messages(broker) == [("provisioning.converge_router", [1]), ("provisioning.converge_router", [2])]
    assert relay_batch(publisher, now=clock.now()) == 0


def test_the_same_call_in_one_batch_is_published_once(broker: redis.Redis, publisher: Publisher) -> None:
    send(1, 2, 1, 1)
    assert relay_batch(publisher, now=clock.now()) == 4
    assert messages(broker) == [("provisioning.converge_router", [1]), ("provisioning.converge_router", [2])]
    assert unpublished() == 0


def test_a_row_that_commits_late_is_not_passed_over(broker: redis.Redis, publisher: Publisher) -> None:
    """Its id is lower than one that is published already: "id greater than the last" would lose it."""
    inserted, may_commit = threading.Event(), threading.Event()

    def slow_order() -> None:
        with transaction.atomic():
            send_task("provisioning.converge_router", 1, now=clock.now())
            inserted.set()
            may_commit.wait(10)
        connection.close()

    slow = threading.Thread(target=slow_order)
    slow.start()
    assert inserted.wait(10)
    send(2)
    relay_batch(publisher, now=clock.now())
    may_commit.set()
    slow.join()
    relay_batch(publisher, now=clock.now())
    assert [args for _, args in messages(broker)] == [[2], [1]]


def test_two_relays_do_not_wait_for_each_other(broker: redis.Redis, publisher: Publisher) -> None:
    send(1)
    locked, done = threading.Event(), threading.Event()

    def other_relay() -> None:
        with transaction.atomic():
            list(Outbox.objects.select_for_update())
            locked.set()
            done.wait(10)
        connection.close()

    other = threading.Thread(target=other_relay)
    other.start()
    assert locked.wait(10)
    assert relay_batch(publisher, now=clock.now()) == 0
    done.set()
    other.join()
    assert relay_batch(publisher, now=clock.now()) == 1


def test_what_the_broker_did_not_take_stays_in_the_outbox(publisher: Publisher) -> None:
    send(1)
    dead = Publisher(app)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app.conf, "broker_url", "redis://127.0.0.1:1/0")
        patch.setattr(app.conf, "broker_write_url", "redis://127.0.0.1:1/0")
        with pytest.raises(Exception, match="Connection refused"):
            relay_batch(dead, now=clock.now())
    assert unpublished() == 1


def test_the_process_publishes_and_ends_on_sigterm(
    broker: redis.Redis, start_relay: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = start_relay()
    send(1)
    eventually(lambda: len(messages(broker)) == 1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0


def test_it_survives_a_restart_of_the_broker(
    start_relay: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    with own_broker(port, tmp_path) as (_, url):
        start_relay(url)
        send(1)
        eventually(lambda: unpublished() == 0)
    send(2)
    with own_broker(port, tmp_path), redis.Redis.from_url(url) as again:
        eventually(lambda: unpublished() == 0)
        assert messages(again) == [("provisioning.converge_router", [2])]


def test_it_survives_the_loss_of_its_database_connections(
    broker: redis.Redis, start_relay: Callable[..., subprocess.Popen[bytes]]
) -> None:
    start_relay()
    send(1)
    eventually(lambda: unpublished() == 0)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    send(2)
    eventually(lambda: unpublished() == 0)
    assert [args for _, args in messages(broker)] == [[1], [2]]


def test_it_survives_a_frozen_broker(
    start_relay: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    with own_broker(port, tmp_path) as (broker, url):
        relay = start_relay(url)
        send(1)
        eventually(lambda: unpublished() == 0)
        broker.send_signal(signal.SIGSTOP)
        send(2)
        time.sleep(1)
        assert relay.poll() is None
        broker.send_signal(signal.SIGCONT)
        eventually(lambda: unpublished() == 0, timeout_s=60)
