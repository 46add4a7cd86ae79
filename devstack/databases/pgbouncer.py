"""A private PgBouncer, which may run each transaction in a different session of a PostgreSQL server."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from devstack.databases.postgres import account, fresh_home, remove_home
from devstack.process import LOOPBACK, Child, Server, accepts


class PgbouncerMissing(Exception):
    """This machine has no pgbouncer."""


@contextmanager
def running(*, folder: Path, log: Path, port: int, before: str, sessions: int) -> Iterator[Server]:
    """Run a pool with this number of sessions for the database with the URL ``before``. Yield the pool.

    The URL of the pool leads to the same database. Raises PgbouncerMissing or ChildFailed.
    """
    binary = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if binary is None:
        raise PgbouncerMissing("PgBouncer is not installed: apt-get install pgbouncer")
    home = fresh_home(folder)
    try:
        to = conninfo_to_dict(before)
        (home / "users.txt").write_text(f'"{to["user"]}" "{to["password"]}"\n')
        config = home / "pgbouncer.ini"
        config.write_text(
            f"[databases]\n* = host={to['host']} port={to['port']}\n"
            f"[pgbouncer]\nlisten_addr = {LOOPBACK}\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = scram-sha-256\nauth_file = {home}/users.txt\n"
            f"pool_mode = transaction\ndefault_pool_size = {sessions}\nmax_client_conn = 500\n"
        )
        # PgBouncer refuses to run as root.
        child = Child("pgbouncer", [binary, str(config)], log, cwd=home, user=account())
        try:
            child.start().wait_until(lambda: accepts(port))
            yield Server(f"postgres://{to['user']}:{to['password']}@{LOOPBACK}:{port}/{to['dbname']}", child)
        finally:
            child.stop()
    finally:
        remove_home(folder)
