"""Fixtures of all tests."""

import gc
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import pytest
from django.core.cache import cache
from django.db import transaction
from django.db.backends.postgresql.operations import DatabaseOperations
from django.db.models.signals import post_migrate
from django.db.models.sql.compiler import SQLUpdateCompiler
from django.utils import translation
from hypothesis import settings
from pytest_django import DjangoDbBlocker

from devstack.isp import ALPINE_DAIRY, Port, small_isp
from devstack.stack import Stack
from tests.joined_updates import has_join, sent_by_the_product
from tests.stacks import simulated

# By default an example that takes 200 ms fails, which on a busy machine is any.
settings.register_profile("without-deadline", deadline=None)
settings.load_profile("without-deadline")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort tests that use live_stack last, because they wait while they occupy a process of the run."""
    items.sort(key=lambda item: "live_stack" in getattr(item, "fixturenames", ()))


def pytest_collection_finish() -> None:
    """Keep the collected modules out of garbage collection, which is for the objects of tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """Only empty the tables after a test with transactions.

    Django would also re-create the rows that come with migrations: content types, permissions, triggers.
    """
    with (
        mock.patch.object(post_migrate, "send"),
        mock.patch.object(DatabaseOperations, "sql_flush", _without_new_files),
    ):
        yield


def _without_new_files(
    operations: DatabaseOperations, style: Any, tables: Sequence[str], **options: Any
) -> list[str]:
    """Return SQL that empties the tables with DELETE.

    Django uses TRUNCATE, which creates four hundred files for a handful of rows. Like TRUNCATE, this SQL runs
    no triggers: neither those of foreign keys nor the one that forbids the deletion of events.
    """
    emptied = "; ".join(f"DELETE FROM {operations.quote_name(name)}" for name in tables)  # noqa: S608
    return [f"DO $$ BEGIN SET LOCAL session_replication_role = replica; {emptied}; END $$"]


@pytest.fixture(scope="session")
def joined_updates() -> Iterator[list[str]]:
    """Collect the UPDATEs of the product whose conditions name another table by a join."""
    found = list[str]()
    as_sql = SQLUpdateCompiler.as_sql

    def watched(compiler: SQLUpdateCompiler) -> Any:
        sql, params = as_sql(compiler)
        if has_join(sql) and sent_by_the_product():
            found.append(sql)
        return sql, params

    with mock.patch.object(SQLUpdateCompiler, "as_sql", watched):
        yield found


@pytest.fixture(autouse=True)
def no_joined_updates(joined_updates: list[str]) -> Iterator[None]:
    """Fail if the product sends an UPDATE with a join.

    Django moves all conditions of such an UPDATE into a subquery of the same table. PostgreSQL does not check
    a subquery again after it has waited for a row, so that two processes could claim one row.
    """
    yield
    sent = [*joined_updates]
    joined_updates.clear()
    assert sent == [], "replace the join by a condition like port__in=Port.objects.filter(...)"


@pytest.fixture(scope="module")
def module_rows(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Keep the rows that a module's fixtures create after this one, unchanged for each test of the module."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture(autouse=True)
def fresh_limits(pytestconfig: pytest.Config) -> None:
    """Reset the rate limits before each test."""
    if pytestconfig.getoption("services") != "none":
        cache.clear()


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    """Reset the language, which a test client leaves set in the test's own thread."""
    yield
    translation.deactivate()


@pytest.fixture(scope="session")
def live_stack() -> Iterator[Stack]:
    """Run the small ISP on stand-in VPPs with separate services; agents report every two seconds.

    All browser tests and journeys share it, because its start takes as long as many of them together. Whole
    ports are sold on memif1/0 only, VLANs on the other ports.
    """
    isp = small_isp(extra_ports=(Port("memif1/0", ALPINE_DAIRY),))
    with simulated(isp) as running:
        yield running
