"""A private PostgreSQL server on loopback TCP and a Unix socket, and a cluster with all migrations.

A server's cluster is deleted at the end, unless the caller requests to keep it. The database servers of tests
start with a copy of the migrated cluster.
"""

import fcntl
import hashlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

from devstack.folders import ROOT, RUN
from devstack.process import LOOPBACK, Child, Server, free_ports, run

USER = "longline"
DATABASE = "longline"
# Debian's package creates this account. PostgreSQL refuses to run as root.
UNPRIVILEGED_USER = "postgres"
# A socket's path has at most 107 bytes (unix(7): sun_path has 108 with the NUL). Its name is .s.PGSQL.<port>.
SOCKET_FOLDER_MAX = 107 - len("/.s.PGSQL.65535")


class PostgresMissing(Exception):
    """This machine has no PostgreSQL server."""


def account() -> str | None:
    """Return the account of database servers: an unprivileged one if this process is root, else None."""
    return UNPRIVILEGED_USER if os.geteuid() == 0 else None


def server_binaries() -> Path:
    """Return the folder with `initdb` and `postgres` of the newest version in /usr/lib/postgresql."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if not found:
        raise PostgresMissing("PostgreSQL's server is not installed: apt-get install postgresql")
    return max(found, key=lambda folder: int(folder.parent.name))


@contextmanager
def running(
    *,
    folder: Path,
    log: Path,
    port: int,
    durable: bool,
    kept: bool = False,
    template: Path | None = None,
    ready_within_s: float = 30,
) -> Iterator[Server]:
    """Run a cluster in `folder`. The URL of the server is suitable for DATABASE_URL.

    * `durable`: False disables fsync, for tests only: if the machine crashes, commits are lost.
    * `kept`: keep the cluster at the end, and use an existing cluster. PostgreSQL refuses to start while
      another server runs on the cluster.
    * `template`: start with a copy of this cluster, which an earlier call with `kept` has left behind. None
      starts with an empty cluster.
    * `ready_within_s`: seconds until the server accepts connections. After a crash, a cluster first syncs all
      its files and replays WAL.

    Raises PostgresMissing or ChildFailed.
    """
    binaries = server_binaries()
    try:
        if kept and (folder / "password").exists():
            home = folder.resolve()
        else:
            home = fresh_home(folder)
            if template is None:
                _initdb(binaries, home, password=secrets.token_urlsafe(24), log=log)
            else:
                copy_cluster(template, home)
        password = (home / "password").read_text().strip()
        (home / "cluster" / "postgresql.auto.conf").write_text(_settings(home, port=port, durable=durable))
        with _serving("postgres", binaries, home, log=log, port=port, within_s=ready_within_s) as server:
            yield Server(f"postgres://{USER}:{password}@{_host(home)}:{port}/{DATABASE}", server)
    finally:
        if not kept:
            remove_home(folder)


@contextmanager
def replica(*, of: str, folder: Path, log: Path, port: int) -> Iterator[Server]:
    """Run a streaming replica of the server with the URL ``of``. Its URL is suitable for
    DATABASE_REPLICA_URL.

    Raises PostgresMissing or ChildFailed.
    """
    binaries = server_binaries()
    at = urlsplit(of)
    try:
        home = fresh_home(folder)
        cluster = home / "cluster"
        copy = [f"{binaries}/pg_basebackup", f"--pgdata={cluster}", "--checkpoint=fast"]
        # The URL comes last, because errors quote the first arguments, and the URL contains the password.
        copy += ["--wal-method=stream", "--write-recovery-conf", f"--dbname={of}"]
        run(copy, log=log, cwd=home, user=account())
        # Append to the copied settings, because the last value of a setting counts.
        with (cluster / "postgresql.auto.conf").open("a") as settings:
            settings.write(_settings(home, port=port, durable=False))
        with _serving("replica", binaries, home, log=log, port=port) as server:
            yield Server(f"postgres://{at.username}:{at.password}@{_host(home)}:{port}{at.path}", server)
    finally:
        remove_home(folder)


@contextmanager
def _serving(
    name: str, binaries: Path, home: Path, *, log: Path, port: int, within_s: float = 30
) -> Iterator[Child]:
    """Run a server on the cluster in ``home``, and yield it when it accepts connections."""
    server = Child(
        name=name,
        argv=[f"{binaries}/postgres", "-D", f"{home}/cluster"],
        log=log,
        cwd=home,
        user=account(),
        # This is a fast shutdown. With SIGTERM, PostgreSQL would wait until every client has disconnected.
        stop_signal=signal.SIGINT,
    )
    try:
        yield server.start().wait_until(lambda: _accepts_connections(binaries, port), within_s)
    finally:
        server.stop()


def fresh_home(folder: Path) -> Path:
    """Return an empty private folder that `account()` owns and can enter.

    If the clone is in a private folder (/root, mktemp -d), an unprivileged account cannot enter it. The
    result is then in the system's temporary folder, and `folder` becomes a link to the result.
    """
    remove_home(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if (user := account()) is None:
        folder.mkdir(mode=0o700)
        return folder
    if all(parent.stat().st_mode & 0o001 for parent in folder.absolute().parents):
        home = folder
        home.mkdir(mode=0o700)
    else:
        home = Path(tempfile.mkdtemp(prefix="longline-postgres-"))
        folder.symlink_to(home)
    shutil.chown(home, user, user)
    return home


def copy_cluster(home: Path, to: Path) -> None:
    """Copy a cluster that is not running, together with its password. The owner stays the same."""
    parts = [str(home / name) for name in ("cluster", "password")]
    subprocess.run(["cp", "--archive", "--reflink=auto", *parts, str(to)], check=True)


def remove_home(folder: Path) -> None:
    """Remove a folder that `fresh_home` has made."""
    if folder.is_symlink():
        shutil.rmtree(folder.resolve(), ignore_errors=True)
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _initdb(binaries: Path, home: Path, *, password: str, log: Path) -> None:
    """Create a cluster with a superuser and a database, both named longline. `password` is stored next to the
    cluster.
    """
    cluster, password_file = home / "cluster", home / "password"
    password_file.touch(mode=0o600)
    password_file.write_text(password + "\n")
    if user := account():
        shutil.chown(password_file, user)
    init = [
        f"{binaries}/initdb",
        f"--pgdata={cluster}",
        f"--username={USER}",
        "--auth=scram-sha-256",
        f"--pwfile={password_file}",
        "--encoding=UTF8",
        "--locale=C.UTF-8",
        "--no-sync",
        "--no-instructions",
    ]
    # Single-user mode needs no connection, so no password appears on a command line.
    single = [f"{binaries}/postgres", "--single", "-D", str(cluster), "postgres"]
    run(init, log=log, cwd=home, user=user)
    run(single, log=log, cwd=home, user=user, script=f"CREATE DATABASE {DATABASE}\n")


def _sockets(home: Path) -> str:
    """Return the folder for the Unix socket, or "" if the path of the socket would be too long."""
    return str(home) if len(str(home)) <= SOCKET_FOLDER_MAX else ""


def _host(home: Path) -> str:
    """Return the host for the URL: if possible the socket's folder, where statements take half as long."""
    return quote(_sockets(home.resolve()), safe="") or LOOPBACK


def _settings(home: Path, *, port: int, durable: bool) -> str:
    lines = [
        f"listen_addresses = '{LOOPBACK}'",
        f"port = {port}",
        f"unix_socket_directories = '{_sockets(home.resolve())}'",
        "max_connections = 200",
        "shared_buffers = '256MB'",
        # This value suits solid-state disks. With the default, PostgreSQL would scan whole tables to find the
        # lines of one router.
        "random_page_cost = 1.1",
        "max_wal_size = '2GB'",
    ]
    if not durable:
        lines += ["fsync = off", "synchronous_commit = off", "full_page_writes = off"]
    return "\n".join(lines) + "\n"


def _accepts_connections(binaries: Path, port: int) -> bool:
    probe = [f"{binaries}/pg_isready", "--quiet", f"--host={LOOPBACK}", f"--port={port}"]
    return subprocess.run(probe, check=False).returncode == 0


_HOME = RUN / "migrated"
_SETTINGS = {
    "DJANGO_SETTINGS_MODULE": "portal.settings",
    "SECRET_KEY": "for-tests-only",
    "TOKEN_PEPPER": "for-tests-only",
    "BASE_URL": "http://testserver",
    "REDIS_URL": "redis://127.0.0.1:1/0",
}


def migrated_cluster() -> Path:
    """Return the folder of a cluster in which all migrations have run. Raises PostgresMissing or ChildFailed.

    The first process that needs the cluster creates it with `manage.py upgrade`, as a first installation
    does. All lanes of a test run share the cluster. Later runs use it too, until a file of the portal
    changes. Tests of upgrades from an earlier release use separate databases
    (tests/integration/database/test_upgrade.py).
    """
    _HOME.mkdir(parents=True, exist_ok=True)
    cluster = _HOME / _fingerprint()
    with (_HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not cluster.exists():
            for older in _HOME.glob("*/"):
                shutil.rmtree(older)
            _make(cluster)
    return cluster


def _fingerprint() -> str:
    """Return a hash of all files that a migration may read.

    If the hash changes, the cluster may need other tables, triggers or rows.
    """
    files = [
        ROOT / "requirements.txt",
        *(p for p in (ROOT / "portal").rglob("*") if p.suffix in (".py", ".sql")),
    ]
    digest = hashlib.sha256(str(server_binaries()).encode())
    for file in sorted(files):
        digest.update(f"{file}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _make(target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="ll-migrated-") as name:
        folder, logs = Path(name), RUN / "log"
        # The account that runs PostgreSQL must be able to enter this folder.
        folder.chmod(0o711)
        cluster, [port] = folder / "postgres", free_ports(1)
        with running(
            folder=cluster, log=logs / "migrated-postgres.log", port=port, durable=False, kept=True
        ) as server:
            run(
                [sys.executable, "manage.py", "upgrade"],
                log=logs / "migrated.log",
                env=os.environ | _SETTINGS | {"DATABASE_URL": server.url},
                cwd=ROOT,
            )
        unfinished = target.with_suffix(".unfinished")
        unfinished.mkdir()
        copy_cluster(cluster, unfinished)
        unfinished.rename(target)
