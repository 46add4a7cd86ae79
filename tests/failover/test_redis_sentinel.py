"""Redis with Sentinel: all users of Redis find the new master when the old one is dead or silent."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from django.conf import settings
from kombu import Connection

from devstack.databases import redis as redis_servers
from devstack.databases.redis import Watched
from devstack.folders import VENV_BIN
from devstack.process import LOOPBACK, Child
from portal.core.redis_servers import FallbackRedisCache, RedisUrl, read_redis_url
from portal.processes.single_beat import NAME, Turn

# Less than the 51 s after which kombu alone would notice.
WITHIN_S = 45
QUEUE = "sentinel"


class Failing:
    """A Redis with Sentinel whose master the test can kill or freeze."""

    def __init__(self, watched: Watched, how: str) -> None:
        self.url = watched.url
        self._watched = watched
        self._how = how

    @property
    def address(self) -> RedisUrl:
        return read_redis_url(self.url, variable="REDIS_URL")

    def fail_over(self) -> None:
        """Kill or freeze the master, and wait until the Sentinels have elected another one."""
        first = self._watched.master()
        child = self._watched.servers[first]
        if self._how == "killed":
            child.end()
        else:
            child.freeze()
        eventually(lambda: self._watched.master() != first)

    def thaw(self) -> None:
        """Let frozen servers run again, because a frozen one would not end on request."""
        if self._how == "frozen":
            for child in self._watched.servers.values():
                child.thaw()

    def master(self, database: int = 0) -> redis.Redis:
        """Return a client of the current master that uses none of the code under test."""
        return redis.Redis(LOOPBACK, self._watched.master(), db=database, password=self._watched.password)


@pytest.fixture(params=["killed", "frozen"])
def failing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Failing]:
    with redis_servers.watched(folder=tmp_path / "redis") as watched:
        failing = Failing(watched, request.param)
        yield failing
        failing.thaw()


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not _is_true(condition):
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.1)


def _is_true(condition: Callable[[], object]) -> bool:
    try:
        return bool(condition())
    except (redis.RedisError, OSError):
        return False


def test_clients_the_cache_and_beats_lock_continue_on_the_new_master(failing: Failing) -> None:
    cache = FallbackRedisCache([failing.address.with_database(1).url], {"OPTIONS": {"patience_s": 0.5}})
    turn = Turn(redis.Redis(connection_pool=failing.address.pool(patience_s=1)))
    cache.set("before", 1)
    assert turn.is_ours()

    failing.fail_over()

    with failing.address.client(patience_s=1) as client:
        eventually(client.ping)
    with failing.master(database=1) as master:

        def counted_on_the_new_master() -> bool:
            cache.set("after", 2)
            return master.exists(cache.make_key("after")) == 1

        eventually(counted_on_the_new_master)
    with failing.master() as master:
        eventually(lambda: turn.is_ours() and master.exists(NAME))


def test_a_worker_continues_on_the_new_master(failing: Failing, tmp_path: Path) -> None:
    worker = Child(
        name="worker",
        argv=[
            str(VENV_BIN / "celery"),
            *("-A", "portal", "worker", "-Q", QUEUE, "--concurrency", "1", "--pool", "solo"),
        ],
        log=tmp_path / "worker.log",
        env=os.environ | {"REDIS_URL": failing.url, "LOG_LEVEL": "INFO"},
        cwd=settings.BASE_DIR,
    )
    try:
        worker.start().wait_until(lambda: b" ready." in worker.log.read_bytes(), timeout_s=120)
        _send(failing)
        eventually(lambda: _is_done(failing))

        failing.fail_over()

        eventually(lambda: _send(failing))
        eventually(lambda: _is_done(failing))
        worker.raise_if_dead()
    finally:
        worker.stop()


def _send(failing: Failing) -> bool:
    with Connection(
        failing.address.broker_url,
        transport="portal.processes.celery_transport:SentinelTransport",
        transport_options={"socket_timeout": 1, **failing.address.broker_options(patience_s=1)},
    ) as connection:
        from portal.celery import app

        app.send_task("celery.accumulate", args=[1], connection=connection, queue=QUEUE, retry=False)
    return True


def _is_done(failing: Failing) -> bool:
    """Return whether no task waits or runs."""
    with failing.master() as master:
        return master.llen(QUEUE) == 0 and master.hlen("unacked") == 0
