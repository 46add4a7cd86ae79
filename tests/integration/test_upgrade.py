"""`manage.py upgrade`: the tables are made once, however many start it, and nothing is left to do."""

import os
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from devstack.paths import ROOT
from devstack.services import Services
from portal.audit.post_migrate import triggers_install
from portal.processes import health_checks

DATABASE = "upgraded"


@pytest.fixture(scope="module")
def database(private_services: Services) -> Iterator[str]:
    """The URL of an empty database of its own."""
    server = private_services.database_url
    url = urlsplit(server)._replace(path=f"/{DATABASE}").geturl()
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}")
        try:
            yield url
        finally:
            connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def _start(url: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _wait(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 0, said
    return said


def test_two_upgrades_at_a_time_migrate_once_and_a_third_keeps_every_row(database: str) -> None:
    said = [_wait(each) for each in [_start(database, "upgrade") for _ in range(2)]]
    assert sorted("No migrations to apply" in text for text in said) == [False, True]
    with psycopg.connect(database) as connection:
        connection.execute("INSERT INTO accounts_customer (name, created_at) VALUES ('Alpine Dairy', now())")
    assert "No migrations to apply" in _wait(_start(database, "upgrade"))
    _wait(_start(database, "migrate", "--check"))
    with psycopg.connect(database) as connection:
        # The audit trail is made with the tables.
        kept = connection.execute(
            "SELECT name, pgh_label FROM accounts_customer JOIN audit_customerevent USING (name)"
        )
        assert kept.fetchall() == [("Alpine Dairy", "insert")]


def _triggers() -> dict[str, tuple[str, int]]:
    """The audit trail's: the table of each, and the number that it got when it was made."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgname, tgrelid::regclass::text, oid::int FROM pg_trigger WHERE tgname LIKE 'pgtrigger_%'"
        )
        return {name: (table, oid) for name, table, oid in cursor.fetchall()}


@pytest.mark.django_db
def test_triggers_of_the_trail_are_made_anew_only_where_they_differ() -> None:
    """To make one anew locks everybody out of its table."""
    before = _triggers()
    outdated = next(name for name in before if name.startswith("pgtrigger_insert"))
    with connection.cursor() as cursor:
        # Where pgtrigger keeps a digest of what it installed.
        cursor.execute(f"COMMENT ON TRIGGER {outdated} ON {before[outdated][0]} IS 'an earlier one'")
    triggers_install(using="default")
    after = _triggers()
    assert after.keys() == before.keys()
    assert [name for name in after if after[name] != before[name]] == [outdated]


@pytest.mark.django_db
def test_a_process_is_ready_once_the_tables_are_of_its_release(monkeypatch: pytest.MonkeyPatch) -> None:
    # Another process than the one that asked before.
    monkeypatch.setattr(health_checks, "_migrations", health_checks._Migrations())
    newest = MigrationRecorder.Migration.objects.latest("id")
    newest.delete()
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["migrations"]) == (503, "pending")
    newest.save()
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["migrations"]) == (200, "applied")
