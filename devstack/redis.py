"""A private Redis server that keeps nothing on disk."""

import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devstack.process import Child, Server
from devstack.tcp_ports import LOOPBACK


class RedisMissing(Exception):
    """No redis-server on this machine."""


@contextmanager
def running(*, folder: Path, log: Path, port: int) -> Iterator[Server]:
    """Start Redis; its URL is what REDIS_URL takes. Raises RedisMissing or ChildFailed."""
    binary = shutil.which("redis-server")
    if binary is None:
        raise RedisMissing("Redis is not installed: apt-get install redis-server")
    folder.mkdir(parents=True, exist_ok=True)
    password = secrets.token_urlsafe(24)
    # In a file, because a command line is readable by every account of the machine.
    config = folder / "redis.conf"
    config.touch(mode=0o600)
    config.write_text(
        f"bind {LOOPBACK}\nport {port}\nrequirepass {password}\n"
        f'dir "{folder}"\nsave ""\nappendonly no\nmaxmemory-policy noeviction\n'
    )
    server = Child(name="redis", argv=[binary, str(config)], log=log, cwd=folder)
    try:
        server.start().wait_until(lambda: _answers(port, password))
        yield Server(f"redis://:{password}@{LOOPBACK}:{port}/0", server)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _answers(port: int, password: str) -> bool:
    """True when Redis takes our password (RESP, inline commands)."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1) as connection:
            connection.sendall(f"AUTH {password}\r\n".encode())
            return connection.recv(16).startswith(b"+OK")
    except OSError:
        return False
