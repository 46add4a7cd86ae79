"""Continuous archiving and point-in-time recovery, as docs/operate/backup-and-restore.md describes."""

import os
import pwd
import shutil
import subprocess
import time
from datetime import datetime
from pathlib import Path

import psycopg

from devstack.databases.postgres import UNPRIVILEGED_USER, server_binaries
from devstack.process import Child

# Seconds after which an incomplete WAL segment is archived. If the machine is lost, the commits of at most
# this time are lost.
ARCHIVE_TIMEOUT_S = 60
_ARCHIVING = f"""
archive_mode = on
archive_library = 'basic_archive'
basic_archive.archive_directory = '{{wal}}'
archive_timeout = {ARCHIVE_TIMEOUT_S}s
"""
_RECOVERY = """
restore_command = 'cp "{wal}/%f" "%p"'
recovery_target_time = '{moment}'
recovery_target_action = 'promote'
"""
_ARCHIVED = "SELECT last_archived_wal >= %s FROM pg_stat_archiver"


def archiving_begin(cluster: Path, server: Child, wal: Path) -> None:
    """Restart PostgreSQL so that it archives each WAL segment to the folder ``wal``."""
    wal.mkdir(mode=0o700)
    _give(wal)
    _set(cluster, _ARCHIVING.format(wal=wal))
    server.stop()
    server.restart()


def base_backup(database_url: str, to: Path) -> None:
    """Copy the whole cluster while it runs. Check the copy against its manifest."""
    _run("pg_basebackup", f"--dbname={database_url}", f"--pgdata={to}", "--checkpoint=fast")
    _run("pg_verifybackup", "--quiet", str(to))


def last_segment_archive(database_url: str, *, within_s: float = 60) -> None:
    """If the cluster still runs, archive all WAL that it has written so far. Raises TimeoutError."""
    with psycopg.connect(database_url, autocommit=True) as database:
        row = database.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchone()
        deadline = time.monotonic() + within_s
        while database.execute(_ARCHIVED, row).fetchone() != (True,):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{row} was not archived within {within_s:g} s")
            time.sleep(0.1)


def recovery_prepare(base: Path, cluster: Path, *, wal: Path, moment: datetime) -> None:
    """Make a cluster from a base backup. When it starts, it replays the archived WAL up to the
    time ``moment``.
    """
    shutil.copytree(base, cluster, symlinks=True)
    _set(cluster, _RECOVERY.format(wal=wal, moment=moment.isoformat()))
    (cluster / "recovery.signal").touch()
    _give(cluster.parent)


def recovered_wait(database_url: str, *, within_s: float) -> None:
    """Wait until the recovery has ended. Raises TimeoutError."""
    deadline = time.monotonic() + within_s
    with psycopg.connect(database_url, autocommit=True) as database:
        while database.execute("SELECT pg_is_in_recovery()").fetchone() != (False,):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the recovery was not over within {within_s:g} s")
            time.sleep(0.1)


def _set(cluster: Path, settings: str) -> None:
    with (cluster / "postgresql.conf").open("a") as file:
        file.write(settings)


def _give(folder: Path) -> None:
    """Make the account that runs PostgreSQL the owner of the folder."""
    if os.geteuid():
        return
    account = pwd.getpwnam(UNPRIVILEGED_USER)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)


def _run(program: str, *arguments: str) -> None:
    subprocess.run([str(server_binaries() / program), *arguments], check=True)
