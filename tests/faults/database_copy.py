"""Backing the product's database up and putting an older state back, as an operator would: with pg_dump."""

import subprocess
from pathlib import Path

import psycopg

from devstack.postgres import server_binaries

# Whatever writes by itself; the servers stay up and see the database vanish and come back.
WRITERS = ("worker", "sweeper", "beat", "relay")


def dump(database_url: str, to: Path) -> Path:
    _run("pg_dump", "--format=custom", f"--file={to}", database_url)
    return to


def restore(database_url: str, dumped: Path) -> None:
    """Replace the whole database by a dump."""
    server, _, name = database_url.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as other:
        other.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
        other.execute(f'CREATE DATABASE "{name}"')
    _run("pg_restore", "--exit-on-error", "--single-transaction", f"--dbname={database_url}", str(dumped))


def _run(program: str, *arguments: str) -> None:
    subprocess.run([str(server_binaries() / program), *arguments], check=True, timeout=60)
