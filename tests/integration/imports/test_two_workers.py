"""Two workers that receive the same message do not run the same batch."""

import threading
from typing import Any

import psycopg
import pytest
from django.db import connection

from portal.accounts.models import User
from portal.celery_tasks import RUN_IMPORT
from portal.core import clock
from portal.imports.models import ImportState
from portal.imports.operations import batch_run, import_run
from portal.inventory.models import Site
from portal.inventory.operations import site_create
from tests.integration.imports.files import staged, work
from tests.integration.requested_tasks import requested

pytestmark = pytest.mark.django_db(transaction=True)


def test_second_worker_does_nothing_while_one_runs_a_batch(nora: User) -> None:
    this = staged(nora, "sites", "name\nBern\n", at_once=True)
    mine = {name: connection.settings_dict[name.upper()] for name in ("host", "port", "user", "password")}
    with psycopg.connect(**mine, dbname=connection.settings_dict["NAME"]) as other:
        other.execute("SELECT FROM imports_import WHERE id = %s FOR NO KEY UPDATE", [this.pk])
        assert not batch_run(import_id=this.pk, now=clock.now())
        assert not Site.objects.exists()
    assert work(this).made == 1


def test_two_imports_never_run_at_the_same_time(nora: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt counts as failed until its first batch commits; meanwhile the other import comes first."""
    first = staged(nora, "sites", "name\nBern\n", at_once=True)
    second = staged(nora, "sites", "name\nOslo\n", at_once=True)
    in_the_batch, go_on = threading.Event(), threading.Event()

    def make(**values: Any) -> Site:
        if values["name"] == "Bern":
            in_the_batch.set()
            assert go_on.wait(20)
        return site_create(**values)

    monkeypatch.setattr("portal.imports.kinds.inventory.SITES.create", make)

    def run_the_first() -> None:
        try:
            import_run(import_id=first.pk, turn=first.turn)
        finally:
            connection.close()

    thread = threading.Thread(target=run_the_first)
    thread.start()
    try:
        assert in_the_batch.wait(20)
        import_run(import_id=second.pk, turn=second.turn)
        second.refresh_from_db()
        assert (second.made, second.failures) == (0, 0)
    finally:
        go_on.set()
        thread.join()
    first.refresh_from_db()
    assert (first.made, first.state) == (1, ImportState.COMPLETED)
    # The end of the first import starts the second.
    assert requested(RUN_IMPORT)[-1][1] == [str(second.pk), second.turn]
    assert work(second).made == 1
