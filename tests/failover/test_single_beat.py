"""Of several beats only one works; another takes over when it ends or stops renewing its lock."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from django.conf import settings

from devstack.databases import redis as private_redis
from devstack.folders import VENV_BIN
from devstack.process import Child, Server, free_ports
from portal.processes.single_beat import Turn

LASTS_S = 0.5


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Server]:
    (port,) = free_ports(1)
    with private_redis.running(folder=tmp_path / "redis", log=tmp_path / "redis.log", port=port) as server:
        yield server


@pytest.fixture
def client(broker: Server) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(broker.url) as client:
        yield client


def turn(client: redis.Redis) -> Turn:
    """Return a lock that queries Redis each time."""
    return Turn(client, lasts_s=LASTS_S, renewed_every_s=0)


def test_one_beat_has_the_lock_while_it_renews_it(client: redis.Redis) -> None:
    first, second = turn(client), turn(client)
    assert (first.is_ours(), second.is_ours()) == (True, False)
    until = time.monotonic() + 3 * LASTS_S
    while time.monotonic() < until:
        assert (first.is_ours(), second.is_ours()) == (True, False)
        time.sleep(LASTS_S / 5)


def test_another_beat_takes_over_a_lock_that_is_released_or_not_renewed(client: redis.Redis) -> None:
    first, second, third = turn(client), turn(client), turn(client)
    assert first.is_ours()
    first.give_up()
    assert second.is_ours()
    # The second one stops renewing.
    time.sleep(LASTS_S * 1.5)
    assert third.is_ours()
    assert not second.is_ours()


def test_a_lock_that_redis_lost_is_taken_by_one_beat_again(client: redis.Redis) -> None:
    first, second = turn(client), turn(client)
    assert first.is_ours()
    client.flushall()
    assert second.is_ours()
    assert not first.is_ours()
    # A beat that does not have the lock releases nothing.
    first.give_up()
    assert second.is_ours()


def test_without_redis_no_beat_has_the_lock(broker: Server, client: redis.Redis) -> None:
    first = turn(client)
    assert first.is_ours()
    broker.child.end()
    with pytest.raises(redis.RedisError):
        first.is_ours()
    broker.child.restart()
    assert first.is_ours()


def test_the_second_of_two_processes_sends_once_the_first_has_ended(
    broker: Server, client: redis.Redis, tmp_path: Path
) -> None:
    first, second = (_beat(broker, tmp_path / name) for name in ("first", "second"))
    try:
        first.start().wait_until(lambda: b"this one works" in first.log.read_bytes())
        second.start().wait_until(lambda: b"this one waits" in second.log.read_bytes())
        second.wait_until(lambda: (tmp_path / "second" / "alive").exists())
        assert b"Sending due task" not in second.log.read_bytes()
        first.stop()
        second.wait_until(lambda: b"Sending due task" in second.log.read_bytes())
    finally:
        first.stop()
        second.stop()


def _beat(broker: Server, folder: Path) -> Child:
    folder.mkdir()
    return Child(
        name=folder.name,
        argv=[str(VENV_BIN / "celery"), "-A", "portal", "beat", "-s", str(folder / "schedule")],
        log=folder / "log",
        env=os.environ
        | {"REDIS_URL": broker.url, "LOG_LEVEL": "INFO", "LONGLINE_ALIVE_FILE": str(folder / "alive")},
        cwd=settings.BASE_DIR,
    )
