"""`make check` complains about a migration that could not run while the previous release is in service."""

from unittest import mock

import pytest
from django.contrib.postgres.operations import AddConstraintNotValid, AddIndexConcurrently, ValidateConstraint
from django.db import connection, migrations, models
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation

from scripts.lint_migrations import complaints

pytestmark = pytest.mark.django_db

NUMBER = models.PositiveIntegerField()
POSITIVE = models.CheckConstraint(condition=models.Q(revision__gt=0), name="a_revision_is_positive")
REASON = "No release since 1.3 reads or writes it."


def against(*operations: Operation, **attributes: object) -> list[str]:
    """Return the complaints about a migration of lines with these operations."""
    migration = Migration("9999_new", "vll")
    migration.operations = list(operations)
    for name, value in attributes.items():
        setattr(migration, name, value)
    # The transaction of the test is not the migration's.
    with (
        mock.patch.object(connection, "in_atomic_block", migration.atomic),
        connection.schema_editor(collect_sql=True, atomic=False) as editor,
    ):
        state = MigrationLoader(connection).project_state()
        for operation in operations:
            before = state.clone()
            operation.state_forwards("vll", state)
            operation.database_forwards("vll", editor, before, state)
    return complaints(migration, "\n".join(editor.collected_sql))


def rules(*operations: Operation, **attributes: object) -> list[str]:
    return sorted({each.split(":")[0] for each in against(*operations, **attributes)})


@pytest.mark.parametrize(
    ("operation", "rule"),
    [
        # Django gives such a column a default for the existing rows, and drops the default afterwards.
        (migrations.AddField("vll", "x", models.PositiveIntegerField(default=0)), "ban-drop-default"),
        (migrations.RunSQL("ALTER TABLE vll_vll ADD COLUMN x int NOT NULL"), "adding-required-field"),
        (migrations.RemoveField("vll", "description"), "ban-drop-column"),
        (migrations.RenameField("vll", "description", "title"), "renaming-column"),
        (migrations.AlterField("vll", "description", models.IntegerField()), "changing-column-type"),
        (
            migrations.AddIndex("vll", models.Index(fields=["description"], name="by_description")),
            "require-concurrent-index-creation",
        ),
        (migrations.AddConstraint("order", POSITIVE), "constraint-missing-not-valid"),
        (migrations.DeleteModel("EndMove"), "ban-drop-table"),
    ],
)
def test_operation_that_would_stop_the_running_release_is_named(operation: Operation, rule: str) -> None:
    assert rule in rules(operation)


def test_harmless_operation_is_accepted() -> None:
    new = migrations.CreateModel("Note", [("id", models.BigAutoField(primary_key=True)), ("n", NUMBER)])
    unique = models.UniqueConstraint(fields=["n"], name="a_note_has_its_number")
    assert against(new, migrations.AddConstraint("note", unique)) == []
    assert against(migrations.AddField("vll", "x", models.PositiveIntegerField(db_default=0))) == []
    assert against(migrations.AddField("vll", "x", models.DateTimeField(null=True))) == []
    assert against(AddConstraintNotValid("order", POSITIVE)) == []
    by_description = models.Index(fields=["description"], name="by_description")
    assert against(AddIndexConcurrently("vll", by_description), atomic=False) == []
    assert against(ValidateConstraint("order", "a_revision_is_positive"), atomic=False) == []


def test_operation_that_cannot_be_repeated_needs_a_transaction() -> None:
    assert rules(migrations.RunSQL("CREATE TABLE note ()"), atomic=False) == ["prefer-robust-stmts"]
    assert rules(migrations.RunSQL("CREATE TABLE note ()")) == []


def test_exception_needs_a_reason_and_a_complaint() -> None:
    drop = migrations.RemoveField("vll", "description")
    assert against(drop, linter_exceptions={"ban-drop-column": REASON}) == []
    [complaint] = against(drop, linter_exceptions={"ban-drop-column": "unused"})
    assert "too short a reason" in complaint
    [complaint] = against(drop, linter_exceptions={"ban-drop-column": REASON, "ban-drop-table": REASON})
    assert complaint.startswith("ban-drop-table: is excepted, but squawk does not complain about it")
