"""Back up and restore the database with pg_dump, as docs/operate/backup-and-restore.md describes."""

import subprocess
from pathlib import Path

import psycopg

from devstack.databases.postgres import server_binaries


def dump(database_url: str, to: Path) -> Path:
    _run("pg_dump", "--format=custom", f"--file={to}", database_url)
    return to


def restore(database_url: str, dumped: Path) -> None:
    """Replace the whole database with the contents of a dump."""
    server, _, name = database_url.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as other:
        other.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        other.execute(f'CREATE DATABASE "{name}"')
    _run("pg_restore", "--exit-on-error", "--single-transaction", f"--dbname={database_url}", str(dumped))


def analyze(database_url: str) -> None:
    """Collect statistics for the planner. Dumps of PostgreSQL before version 18 do not contain them."""
    _run("vacuumdb", "--analyze-only", "--quiet", f"--dbname={database_url}")


def _run(program: str, *arguments: str) -> None:
    subprocess.run([str(server_binaries() / program), *arguments], check=True)
