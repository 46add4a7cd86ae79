"""Fixtures of every test."""

import gc
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import pytest
from django.core.cache import cache
from django.db import transaction
from django.db.backends.postgresql.operations import DatabaseOperations
from django.db.models.signals import post_migrate
from django.utils import translation
from pytest_django import DjangoDbBlocker

from devstack.isp import ALPINE_DAIRY, Port, small_isp
from devstack.stack import Stack
from tests.stacks import simulated


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What uses live_stack comes last: while that waits, it takes the processor from other lanes."""
    items.sort(key=lambda item: "live_stack" in getattr(item, "fixturenames", ()))


def pytest_collection_finish() -> None:
    """What is there by now stays until the end: garbage is looked for among what tests make."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """Tables are emptied after a test with transactions, and that is all.

    Django would make what comes with a migration anew each time: content types, permissions, triggers.
    """
    with (
        mock.patch.object(post_migrate, "send"),
        mock.patch.object(DatabaseOperations, "sql_flush", _without_new_files),
    ):
        yield


def _without_new_files(
    operations: DatabaseOperations, style: Any, tables: Sequence[str], **options: Any
) -> list[str]:
    """TRUNCATE, which Django takes, makes four hundred files anew for a handful of rows.

    As TRUNCATE does, this asks no trigger: neither foreign keys nor what keeps events from being deleted.
    """
    emptied = "; ".join(f"DELETE FROM {operations.quote_name(name)}" for name in tables)  # noqa: S608
    return [f"DO $$ BEGIN SET LOCAL session_replication_role = replica; {emptied}; END $$"]


@pytest.fixture(scope="module")
def module_rows(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """What a module's fixture makes after this one is made once: each test finds it as it was made."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture(autouse=True)
def fresh_limits(pytestconfig: pytest.Config) -> None:
    """Rate limits begin anew with each test."""
    if pytestconfig.getoption("services") != "none":
        cache.clear()


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    """A test client answers in the test's own thread, whose language is that of its last reader."""
    yield
    translation.deactivate()


@pytest.fixture(scope="session")
def live_stack() -> Iterator[Stack]:
    """The small ISP on stand-in VPPs, on services of its own; agents report every two seconds.

    For all browsers and journeys: it costs as much to start as many of them cost to run. Whole ports are
    sold of memif1/0 alone, VLANs of the others.
    """
    isp = small_isp(extra_ports=(Port("memif1/0", ALPINE_DAIRY),))
    with simulated(isp) as running:
        yield running
