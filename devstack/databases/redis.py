"""A private Redis server that stores nothing on disk."""

import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devstack.process import Child, Server
from devstack.tcp_ports import LOOPBACK


class RedisMissing(Exception):
    """This machine has no redis-server."""


@contextmanager
def running(*, folder: Path, log: Path, port: int) -> Iterator[Server]:
    """Run Redis. Its URL is suitable for REDIS_URL. Raises RedisMissing or ChildFailed."""
    binary = shutil.which("redis-server")
    if binary is None:
        raise RedisMissing("Redis is not installed: apt-get install redis-server")
    folder.mkdir(parents=True, exist_ok=True)
    password = secrets.token_urlsafe(24)
    # The password is in a file, because all accounts of the machine can read command lines.
    config = folder / "redis.conf"
    config.touch(mode=0o600)
    config.write_text(
        f"bind {LOOPBACK}\nport {port}\nrequirepass {password}\n"
        f'dir "{folder}"\nsave ""\nappendonly no\nmaxmemory-policy noeviction\n'
    )
    server = Child(name="redis", argv=[binary, str(config)], log=log, cwd=folder)
    try:
        server.start().wait_until(lambda: _accepts_password(port, password))
        yield Server(f"redis://:{password}@{LOOPBACK}:{port}/0", server)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _accepts_password(port: int, password: str) -> bool:
    """Return whether Redis accepts the password (RESP, inline commands)."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1) as connection:
            connection.sendall(f"AUTH {password}\r\n".encode())
            return connection.recv(16).startswith(b"+OK")
    except OSError:
        return False
