"""Private Redis servers that store nothing on disk. Sentinels can watch them, and replace a failed master."""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis

from devstack.process import LOOPBACK, Child, Server, free_ports

SERVICE = "longline"
# Milliseconds. If most Sentinels have received nothing from the master for this time, they begin a failover.
DOWN_AFTER_MS = 1000


@dataclass(frozen=True)
class Watched:
    """Redis servers that Sentinels watch. ``url`` is suitable for REDIS_URL.

    ``servers`` and ``sentinels`` are keyed by port.
    """

    url: str
    servers: dict[int, Child]
    sentinels: dict[int, Child]
    password: str

    def master(self) -> int:
        """Return the port of the server that most Sentinels consider the master."""
        masters = [self._master_of(port) for port in self.sentinels]
        return max(set(masters), key=masters.count)

    def _master_of(self, port: int) -> int:
        with redis.Redis(LOOPBACK, port, decode_responses=True) as sentinel:
            _, master = sentinel.sentinel_get_master_addr_by_name(SERVICE)
            return int(master)


class RedisMissing(Exception):
    """This machine has no redis-server."""


@contextmanager
def running(*, folder: Path, log: Path, port: int) -> Iterator[Server]:
    """Run Redis. Its URL is suitable for REDIS_URL. Raises RedisMissing or ChildFailed."""
    password = secrets.token_urlsafe(24)
    text = f'requirepass {password}\nsave ""\nappendonly no\nmaxmemory-policy noeviction\n'
    with ExitStack() as until_the_end:
        server = _start(until_the_end, "redis", folder, log, port, text)
        server.wait_until(lambda: _follows(port, password, is_master=True))
        yield Server(f"redis://:{password}@{LOOPBACK}:{port}/0", server)


@contextmanager
def watched(*, folder: Path, servers: int = 2, sentinels: int = 3) -> Iterator[Watched]:
    """Run servers and Sentinels. The first server is the master. Raises RedisMissing or ChildFailed."""
    ports = free_ports(servers + sentinels)
    password = secrets.token_urlsafe(24)
    with ExitStack() as until_the_end:

        def start(port: int, text: str, *arguments: str) -> Child:
            own = folder / str(port)
            return _start(until_the_end, f"redis-{port}", own, own / "log", port, text, *arguments)

        servers_by_port = {
            port: start(port, _server(password, replica_of=ports[0] if port != ports[0] else None))
            for port in ports[:servers]
        }
        for port, child in servers_by_port.items():
            child.wait_until(lambda port=port: _follows(port, password, is_master=port == ports[0]))  # type: ignore[misc]
        sentinels_by_port = {
            port: start(port, _sentinel(password, master=ports[0], quorum=sentinels // 2 + 1), "--sentinel")
            for port in ports[servers:]
        }
        for port, child in sentinels_by_port.items():
            child.wait_until(lambda port=port: _is_complete(port, servers - 1, sentinels - 1))  # type: ignore[misc]
        hosts = ",".join(f"{LOOPBACK}:{port}" for port in sentinels_by_port)
        yield Watched(
            f"sentinel://:{password}@{hosts}/0?service={SERVICE}",
            servers_by_port,
            sentinels_by_port,
            password,
        )


def _start(
    until: ExitStack, name: str, folder: Path, log: Path, port: int, text: str, *arguments: str
) -> Child:
    """Start Redis with the configuration ``text``. At the end of ``until``, stop it and remove ``folder``."""
    binary = shutil.which("redis-server")
    if binary is None:
        raise RedisMissing("Redis is not installed: apt-get install redis-server")
    folder.mkdir(parents=True, exist_ok=True)
    until.callback(shutil.rmtree, folder, ignore_errors=True)
    # The password is in a file, because all accounts of the machine can read command lines. Sentinels write
    # their state into this file.
    config = folder / "redis.conf"
    config.touch(mode=0o600)
    config.write_text(f'bind {LOOPBACK}\nport {port}\ndir "{folder}"\n{text}')
    child = Child(name, [binary, str(config), *arguments], log, cwd=folder)
    until.callback(child.stop)
    return child.start()


def _server(password: str, *, replica_of: int | None) -> str:
    lines = [f"requirepass {password}", f"masterauth {password}", 'save ""', "appendonly no"]
    # Start full copies immediately. By default, Redis waits five seconds for more replicas.
    lines += ["repl-diskless-sync-delay 0"]
    if replica_of is not None:
        lines.append(f"replicaof {LOOPBACK} {replica_of}")
    return "\n".join(lines) + "\n"


def _sentinel(password: str, *, master: int, quorum: int) -> str:
    return (
        f"sentinel monitor {SERVICE} {LOOPBACK} {master} {quorum}\n"
        f"sentinel auth-pass {SERVICE} {password}\n"
        f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}\n"
        f"sentinel failover-timeout {SERVICE} 5000\n"
    )


def _follows(port: int, password: str, *, is_master: bool) -> bool:
    try:
        with redis.Redis(
            LOOPBACK, port, password=password, decode_responses=True, socket_timeout=1
        ) as server:
            state = server.info("replication")
    except redis.RedisError:
        return False
    return is_master or bool(state.get("master_link_status") == "up")


def _is_complete(port: int, replicas: int, sentinels: int) -> bool:
    try:
        with redis.Redis(LOOPBACK, port, decode_responses=True) as sentinel:
            state = sentinel.sentinel_masters().get(SERVICE, {})
    except redis.RedisError:
        return False
    return (state.get("num-slaves"), state.get("num-other-sentinels")) == (replicas, sentinels)
