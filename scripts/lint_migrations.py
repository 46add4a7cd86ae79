"""`make check`: check that new migrations can run while the previous release serves.

squawk (https://squawkhq.com) checks the SQL of each migration that the previous release lacks. Migrations of
libraries are not checked. To allow an exception, name the rule and the reason in the migration:

    class Migration(migrations.Migration):
        linter_exceptions = {"ban-drop-column": "No release since 1.3 reads or writes it."}
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import django

from devstack.databases import postgres
from devstack.folders import ROOT, RUN, VENV_BIN
from devstack.process import free_ports
from scripts.previous_release import NAME, previous_release

if TYPE_CHECKING:
    from django.db.migrations import Migration

_POSTGRES = "15.0"
_SHORTEST_REASON = 20
_COPY = "with_new_migrations"
_LEFT_OUT = (
    # `manage.py upgrade` sets a timeout for the locks of each statement.
    "require-lock-timeout",
    "require-statement-timeout",
    # Django's models determine the types of columns.
    "prefer-bigint-over-int",
    "prefer-bigint-over-smallint",
    "prefer-text-field",
)
# These statements can run again outside of a transaction, because `manage.py upgrade` first drops unfinished
# indexes (portal/core/db/migration_support.py).
_CAN_RUN_AGAIN = re.compile(r"CREATE (UNIQUE )?INDEX CONCURRENTLY |ALTER TABLE \S+ VALIDATE CONSTRAINT ")


def complaints(migration: "Migration", sql: str) -> list[str]:
    """Return the complaints about a migration and its SQL. Rules that the migration excepts are left out.

    An exception for a rule without a complaint, or an exception with a very short reason, is a complaint too.
    """
    excepted: dict[str, str] = getattr(migration, "linter_exceptions", {})
    against = _squawk(sql, in_transaction=migration.atomic)
    found = [f"{rule}: {what}" for rule, what in against if rule not in excepted]
    for rule, reason in excepted.items():
        if rule not in {rule for rule, _ in against}:
            found.append(f"{rule}: is excepted, but squawk does not complain about it. Remove the exception.")
        if len(reason) < _SHORTEST_REASON:
            found.append(
                f'{rule}: "{reason}" is too short a reason for an exception. Explain why it is safe.'
            )
    return found


def _squawk(sql: str, *, in_transaction: bool) -> list[tuple[str, str]]:
    """Return the rules that the SQL breaks. Each has a text with the message and the statement."""
    options = ["--reporter", "json", "--pg-version", _POSTGRES, "--exclude", ",".join(_LEFT_OUT)]
    if in_transaction:
        options.append("--assume-in-transaction")
    done = subprocess.run(
        [str(VENV_BIN / "squawk"), *options], input=sql, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError(f"squawk ended with status {done.returncode}: {done.stderr}")
    lines = sql.splitlines()
    found = [(each["rule_name"], each, lines[each["line"]]) for each in json.loads(done.stdout)]
    return [
        (rule, " ".join(f"{each['message']} {each['help'] or ''} In: {line}".split()))
        for rule, each, line in found
        if not (rule == "prefer-robust-stmts" and _CAN_RUN_AGAIN.match(line))
    ]


def _new(root: Path) -> set[tuple[str, str]]:
    """Return (app, name) of each migration that the previous release lacks."""
    last = previous_release().migrations
    found = [(path.parent.parent.name, path.stem) for path in root.glob("portal/*/migrations/[0-9]*.py")]
    return {
        (app, name)
        for app, name in found
        # Numbers increase within an app. Two migrations with the same number come from two branches.
        if app not in last or (name[:4] >= last[app][:4] and name != last[app])
    }


def _statements(new: set[tuple[str, str]]) -> Iterator[tuple["Migration", str]]:
    """Yield each new migration with its SQL. The SQL is generated on the tables that the preceding migrations
    have left.
    """
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    MigrationExecutor(connection).migrate(list(previous_release().migrations.items()))
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {_COPY}")
    connection.close()
    connection.settings_dict["NAME"], kept = "postgres", connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {_COPY} TEMPLATE {kept}")
    connection.close()
    connection.settings_dict["NAME"] = _COPY

    executor = MigrationExecutor(connection)
    for migration, _ in executor.migration_plan(executor.loader.graph.leaf_nodes()):
        node = (migration.app_label, migration.name)
        executor = MigrationExecutor(connection)
        if node in new:
            yield migration, "\n".join(executor.loader.collect_sql([(migration, False)]))
        executor.migrate([node])


@contextmanager
def _tables_of_the_previous_release() -> Iterator[None]:
    """Run a cluster with the tables of the previous release.

    The cluster is kept for later runs, because released migrations do not change.
    """
    home = RUN / "lint-migrations"
    digest = hashlib.sha256((ROOT / NAME).read_bytes() + (ROOT / "requirements.txt").read_bytes())
    folder = home / digest.hexdigest()[:16]
    for older in set(home.glob("*/")) - {folder}:
        shutil.rmtree(older)
    [port] = free_ports(1)
    with postgres.running(
        folder=folder, log=home / "postgres.log", port=port, durable=False, kept=True
    ) as server:
        os.environ["DATABASE_URL"] = server.url
        yield


def main() -> int:
    new = _new(ROOT)
    if not new:
        return 0
    against = 0
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    with _tables_of_the_previous_release():
        django.setup()
        for migration, sql in _statements(new):
            for complaint in complaints(migration, sql):
                against += 1
                print(f"portal/{migration.app_label}/migrations/{migration.name}.py: {complaint}")
    return int(against > 0)


if __name__ == "__main__":
    sys.exit(main())
