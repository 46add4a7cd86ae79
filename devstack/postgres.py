"""A private PostgreSQL server on loopback TCP and a Unix socket.

Its cluster is deleted on exit, unless kept.
"""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

from devstack.process import Child, ChildFailed, Server
from devstack.tcp_ports import LOOPBACK

USER = "longline"
DATABASE = "longline"
# Debian's package creates this account; PostgreSQL refuses to run as root.
UNPRIVILEGED_USER = "postgres"
# sun_path has 108 bytes including its NUL (unix(7)); the socket is named .s.PGSQL.<port>.
SOCKET_FOLDER_MAX = 107 - len("/.s.PGSQL.65535")


class PostgresMissing(Exception):
    """Error: this machine has no server binaries."""


def server_binaries() -> Path:
    """Return the folder with `initdb` and `postgres`: the newest version under /usr/lib/postgresql."""
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
    """Start a cluster under `folder`; the server's URL is the value of DATABASE_URL.

    `durable=False` disables fsync, for tests only: a crash of the machine would lose commits. `kept`: the
    cluster remains and is used again; PostgreSQL refuses a second start while it runs. `template`: start with
    a copy of a cluster that `kept` left there, instead of an empty one. `ready_within_s`: a cluster that
    recovers syncs all its files and replays WAL before it accepts connections. Raises PostgresMissing or
    ChildFailed.
    """
    binaries = server_binaries()
    user = UNPRIVILEGED_USER if os.geteuid() == 0 else None
    try:
        if kept and (folder / "password").exists():
            home = folder.resolve()
        else:
            home = fresh_home(folder, user)
            if template is None:
                _initdb(binaries, home, password=secrets.token_urlsafe(24), user=user, log=log)
            else:
                copy_cluster(template, home)
        password = (home / "password").read_text().strip()
        log.parent.mkdir(parents=True, exist_ok=True)
        cluster = home / "cluster"
        (cluster / "postgresql.auto.conf").write_text(_settings(home, port=port, durable=durable))
        server = Child(
            name="postgres",
            argv=[str(binaries / "postgres"), "-D", str(cluster)],
            log=log,
            cwd=home,
            user=user,
            # Fast shutdown: SIGTERM would wait for every client to disconnect.
            stop_signal=signal.SIGINT,
        )
        try:
            server.start().wait_until(lambda: _accepts_connections(binaries, port), ready_within_s)
            yield Server(f"postgres://{USER}:{password}@{_host(home)}:{port}/{DATABASE}", server)
        finally:
            server.stop()
    finally:
        if not kept:
            remove_home(folder)


@contextmanager
def replica(*, of: str, folder: Path, log: Path, port: int) -> Iterator[Server]:
    """Start a streaming replica of the server at this URL; its URL is the value of DATABASE_REPLICA_URL.

    Raises PostgresMissing or ChildFailed.
    """
    binaries = server_binaries()
    user = UNPRIVILEGED_USER if os.geteuid() == 0 else None
    at = urlsplit(of)
    try:
        home = fresh_home(folder, user)
        cluster = home / "cluster"
        copy = [f"{binaries}/pg_basebackup", f"--dbname={of}", f"--pgdata={cluster}"]
        log.parent.mkdir(parents=True, exist_ok=True)
        copy += ["--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf"]
        _run_as(user, copy, home=home, log=log)
        # Append after the copied settings: the last of two values counts.
        with (cluster / "postgresql.auto.conf").open("a") as settings:
            settings.write(_settings(home, port=port, durable=False))
        server = Child(
            name="replica",
            argv=[str(binaries / "postgres"), "-D", str(cluster)],
            log=log,
            cwd=home,
            user=user,
            stop_signal=signal.SIGINT,
        )
        try:
            server.start().wait_until(lambda: _accepts_connections(binaries, port))
            yield Server(f"postgres://{at.username}:{at.password}@{_host(home)}:{port}{at.path}", server)
        finally:
            server.stop()
    finally:
        remove_home(folder)


def fresh_home(folder: Path, user: str | None) -> Path:
    """Return an empty private folder that `user` owns and can reach; None is the current user.

    The unprivileged account cannot enter a clone in a private folder (/root, mktemp -d). In that case the
    home is in the system's temporary folder, and `folder` links to it.
    """
    remove_home(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if user is None:
        folder.mkdir(mode=0o700)
        return folder
    if all(parent.stat().st_mode & 0o001 for parent in folder.absolute().parents):
        home = folder
        home.mkdir(mode=0o700)
    else:
        home = Path(tempfile.mkdtemp(prefix="longline-postgres-"))
        folder.symlink_to(home)
    account = pwd.getpwnam(user)
    os.chown(home, account.pw_uid, account.pw_gid)
    return home


def copy_cluster(home: Path, to: Path) -> None:
    """Copy a cluster that is not running, with its password; the owner does not change."""
    parts = [str(home / name) for name in ("cluster", "password")]
    subprocess.run(["cp", "--archive", "--reflink=auto", *parts, str(to)], check=True)


def remove_home(folder: Path) -> None:
    """Remove a folder that `fresh_home` made."""
    if folder.is_symlink():
        shutil.rmtree(folder.resolve(), ignore_errors=True)
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _initdb(binaries: Path, home: Path, *, password: str, user: str | None, log: Path) -> None:
    """Make a cluster with a superuser and a first database named longline; `password` is saved next to it."""
    cluster, password_file = home / "cluster", home / "password"
    log.parent.mkdir(parents=True, exist_ok=True)
    password_file.touch(mode=0o600)
    password_file.write_text(password + "\n")
    if user:
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
    # Single-user mode needs no connection, and thus no password on a command line.
    single = [f"{binaries}/postgres", "--single", "-D", str(cluster), "postgres"]
    _run_as(user, init, home=home, log=log)
    _run_as(user, single, home=home, log=log, script=f"CREATE DATABASE {DATABASE}\n")


def _run_as(user: str | None, argv: list[str], *, home: Path, log: Path, script: str = "") -> None:
    """Run a program to its end as that account (None: the current one), with `script` as its input.

    Raises ChildFailed.
    """
    with log.open("ab") as output:
        code = subprocess.run(
            argv,
            input=script.encode(),
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=home,
            user=user,
            group=user,
            extra_groups=[] if user else None,
            check=False,
        ).returncode
    if code:
        raise ChildFailed(Path(argv[0]).name, f"ended with status {code}", log)


def _sockets(home: Path) -> str:
    """Return the folder of the socket, or "" if its path would be too long."""
    return str(home) if len(str(home)) <= SOCKET_FOLDER_MAX else ""


def _host(home: Path) -> str:
    """Return the host for a URL. A statement takes half as long over the socket as over loopback."""
    return quote(_sockets(home.resolve()), safe="") or LOOPBACK


def _settings(home: Path, *, port: int, durable: bool) -> str:
    lines = [
        f"listen_addresses = '{LOOPBACK}'",
        f"port = {port}",
        f"unix_socket_directories = '{_sockets(home.resolve())}'",
        "max_connections = 200",
        "shared_buffers = '256MB'",
        # A value for solid-state disks. With the default, PostgreSQL scans whole tables for the lines of one
        # router.
        "random_page_cost = 1.1",
        "max_wal_size = '2GB'",
    ]
    if not durable:
        lines += ["fsync = off", "synchronous_commit = off", "full_page_writes = off"]
    return "\n".join(lines) + "\n"


def _accepts_connections(binaries: Path, port: int) -> bool:
    probe = [f"{binaries}/pg_isready", "--quiet", f"--host={LOOPBACK}", f"--port={port}"]
    return subprocess.run(probe, check=False).returncode == 0
