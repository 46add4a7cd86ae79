"""A worker keeps its database connection from task to task, for as long as it is sound."""

from collections.abc import Iterator

import pytest
from celery.fixups.django import DjangoWorkerFixup
from celery.signals import task_postrun, task_prerun
from django.db import OperationalError, connection

from portal.celery import app, plan_each_statement

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _as_in_a_worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", 60)
    fixup = DjangoWorkerFixup(app)
    task_prerun.connect(fixup.on_task_prerun)
    task_postrun.connect(fixup.on_task_postrun)
    yield
    task_prerun.disconnect(fixup.on_task_prerun)
    task_postrun.disconnect(fixup.on_task_postrun)


def between_two_tasks() -> None:
    task = app.tasks["celery.accumulate"]
    task_postrun.send(sender=task)
    task_prerun.send(sender=task)


def backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def test_the_next_task_has_the_same_connection() -> None:
    before = backend()
    between_two_tasks()
    assert backend() == before


def test_its_statements_are_planned_with_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "prepare_threshold", 3)
    connection.close()
    plan_each_statement()
    with connection.cursor():
        assert connection.connection.prepare_threshold is None


def test_one_that_broke_is_replaced() -> None:
    before = backend()
    with connection.cursor() as cursor, pytest.raises(OperationalError):
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    between_two_tasks()
    assert backend() != before
