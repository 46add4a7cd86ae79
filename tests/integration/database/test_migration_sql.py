"""The SQL of the migrations is in separate files (`portal/core/db/migration_support.py`)."""

from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.migrations import RunSQL
from django.db.migrations.loader import MigrationLoader

from devstack.folders import ROOT

FILES = sorted((ROOT / "portal").glob("*/sql/*.sql"))
REPEATABLE = [path for path in FILES if "FUNCTION" in path.read_text()]

_DEFINED = """
SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prokind = 'f'
UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1
"""


def named(path: Path) -> str:
    return str(path.relative_to(ROOT / "portal"))


def defined() -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(_DEFINED)
        return cursor.fetchall()


def test_every_file_is_run_by_a_migration_and_has_a_comment() -> None:
    migrations = MigrationLoader(None).disk_migrations.values()
    run = [op.sql for each in migrations for op in each.operations if isinstance(op, RunSQL)]
    assert [named(path) for path in FILES if path.read_text() not in run] == []
    assert [named(path) for path in FILES if not path.read_text().startswith("-- ")] == []


@pytest.mark.django_db
@pytest.mark.parametrize("path", REPEATABLE, ids=named)
def test_running_a_file_again_recreates_the_same_functions_and_triggers(path: Path) -> None:
    before = defined()
    with connection.cursor() as cursor:
        cursor.execute(path.read_text())
    assert defined() == before
