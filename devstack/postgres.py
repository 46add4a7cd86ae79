"""A private PostgreSQL server on loopback TCP and a Unix socket; its cluster is gone on exit, unless kept."""

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
# sun_path holds 108 bytes with its NUL (unix(7)); the socket is named .s.PGSQL.<port>.
SOCKET_FOLDER_MAX = 107 - len("/.s.PGSQL.65535")


class PostgresMissing(Exception):
    """No server binaries on this machine."""


def server_binaries() -> Path:
    """Folder with `initdb` and `postgres`: the newest version under /usr/lib/postgresql."""
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
    """Start a cluster under `folder`; its URL is what DATABASE_URL takes.

    `durable=False` gives up fsync, for tests only: a crash of the machine would lose commits.
    `kept`: the cluster stays there and is used again; who starts it meanwhile is refused by PostgreSQL.
    `template`: begin with a copy of the cluster that `kept` left there, and not with an empty one.
    `ready_within_s`: a cluster that recovers syncs all its files and replays WAL before it answers.
    Raises PostgresMissing or ChildFailed.
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
            # Fast shutdown: SIGTERM would wait for every client to leave.
            stop_signal=signal.SIGINT,
        )
        try:
            server.start().wait_until(lambda: _answers(binaries, port), ready_within_s)
            yield Server(f"postgres://{USER}:{password}@{_host(home)}:{port}/{DATABASE}", server)
        finally:
            server.stop()
    finally:
        if not kept:
            remove_home(folder)


@contextmanager
def replica(*, of: str, folder: Path, log: Path, port: int) -> Iterator[Server]:
    """A streaming replica of the server at this URL; its own URL is what DATABASE_REPLICA_URL takes.

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
        # After what the copy brought: of two values the last one counts.
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
            server.start().wait_until(lambda: _answers(binaries, port))
            yield Server(f"postgres://{at.username}:{at.password}@{_host(home)}:{port}{at.path}", server)
        finally:
            server.stop()
    finally:
        remove_home(folder)


def fresh_home(folder: Path, user: str | None) -> Path:
    """An empty private folder that `user` owns and can reach; None: we ourselves.

    A clone in a private folder (/root, mktemp -d) cannot be entered by the unprivileged account;
    the home then is in the system's temporary folder and `folder` links to it.
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
    """Copy a cluster that is not running, with its password; its owner stays who it is."""
    parts = [str(home / name) for name in ("cluster", "password")]
    subprocess.run(["cp", "--archive", "--reflink=auto", *parts, str(to)], check=True)


def remove_home(folder: Path) -> None:
    """What `fresh_home` made."""
    if folder.is_symlink():
        shutil.rmtree(folder.resolve(), ignore_errors=True)
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _initdb(binaries: Path, home: Path, *, password: str, user: str | None, log: Path) -> None:
    """Make a cluster whose superuser and first database are named longline; `password` stays beside it."""
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
    # Single-user mode spares a connection, and so a password on some command line.
    single = [f"{binaries}/postgres", "--single", "-D", str(cluster), "postgres"]
    _run_as(user, init, home=home, log=log)
    _run_as(user, single, home=home, log=log, script=f"CREATE DATABASE {DATABASE}\n")


def _run_as(user: str | None, argv: list[str], *, home: Path, log: Path, script: str = "") -> None:
    """To its end, as that account (None: ours), with `script` as its input. Raises ChildFailed."""
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
    """The folder of the socket, "" where its path would be too long."""
    return str(home) if len(str(home)) <= SOCKET_FOLDER_MAX else ""


def _host(home: Path) -> str:
    """For a URL. A statement costs half as much over the socket as over loopback."""
    return quote(_sockets(home.resolve()), safe="") or LOOPBACK


def _settings(home: Path, *, port: int, durable: bool) -> str:
    lines = [
        f"listen_addresses = '{LOOPBACK}'",
        f"port = {port}",
        f"unix_socket_directories = '{_sockets(home.resolve())}'",
        "max_connections = 200",
        "shared_buffers = '256MB'",
        # As of a solid-state disk: by default whole tables are read for the lines of one router.
        "random_page_cost = 1.1",
        "max_wal_size = '2GB'",
    ]
    if not durable:
        lines += ["fsync = off", "synchronous_commit = off", "full_page_writes = off"]
    return "\n".join(lines) + "\n"


def _answers(binaries: Path, port: int) -> bool:
    probe = [f"{binaries}/pg_isready", "--quiet", f"--host={LOOPBACK}", f"--port={port}"]
    return subprocess.run(probe, check=False).returncode == 0
