"""A batch commits completely or not at all; an interrupted import continues and imports no row twice."""

from contextlib import suppress
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import IntegrityError, OperationalError, connection
from django.test.utils import CaptureQueriesContext

from portal import celery_tasks
from portal.accounts.models import User
from portal.core import clock
from portal.imports.errors import ImportIsOver
from portal.imports.kinds.inventory import SITES
from portal.imports.models import Import, ImportRow, ImportState
from portal.imports.operations import (
    KEPT,
    MOST_FAILURES,
    STILL_AFTER,
    batch_run,
    first_running,
    import_cancel,
    import_run,
    imports_forget,
    imports_resume,
)
from portal.imports.tasks import run_import
from portal.inventory.models import Site
from portal.inventory.operations import site_create
from tests.integration.imports.files import begun, checked, counts, refusals, staged, work
from tests.integration.requested_tasks import forget_requests, requested

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SITES, "batch", 4)


def sites(count: int) -> str:
    return "name\n" + "".join(f"site {n}\n" for n in range(count))


def step(this: Import) -> bool:
    return batch_run(import_id=this.pk, now=clock.now())


def dying_at(name: str) -> Any:
    """Return a function that kills the worker while it creates that site, within its transaction."""

    def make(**values: Any) -> Site:
        if values["name"] == name:
            raise KeyboardInterrupt
        return site_create(**values)

    return mock.patch("portal.imports.kinds.inventory.SITES.create", make)


def test_killed_worker_leaves_whole_batches_and_the_next_continues(nora: User) -> None:
    this = begun(nora, checked(nora, "sites", sites(10)))
    assert step(this)
    with dying_at("site 6"), pytest.raises(KeyboardInterrupt):
        step(this)
    this.refresh_from_db()
    assert (this.done, Site.objects.count(), counts(this)) == (4, 4, {"new": 6, "made": 4})
    assert counts(work(this)) == {"made": 10}
    assert (this.state, Site.objects.count()) == (ImportState.COMPLETED, 10)
    assert not step(this)


def test_interrupted_check_continues_and_writes_nothing(nora: User) -> None:
    this = staged(nora, "sites", sites(10))
    assert step(this)
    with dying_at("site 6"), pytest.raises(KeyboardInterrupt):
        step(this)
    assert counts(work(this)) == {"new": 10}
    assert (this.state, Site.objects.count()) == (ImportState.CHECKED, 0)


def test_sweep_resends_only_stalled_imports(nora: User) -> None:
    def resent(now: Any) -> list[str]:
        forget_requests()
        imports_resume(now=now)
        return [args[0] for _, args in requested(celery_tasks.RUN_IMPORT)]

    this, later = staged(nora, "sites", sites(10)), clock.now() + 2 * STILL_AFTER
    assert resent(clock.now()) == []
    assert resent(later) == [str(this.pk)]
    assert resent(later) == []
    work(this)
    assert resent(later) == []


def test_import_that_always_fails_yields_to_later_ones_and_ends(
    nora: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, later = staged(nora, "sites", sites(10)), staged(nora, "sites", "name\nelsewhere\n")
    opening = SITES.open

    def fail(rows: Any) -> Any:
        if len(rows) > 1:
            raise ValueError("of this import alone")
        return opening(rows)

    monkeypatch.setattr(SITES, "open", fail)
    now = clock.now()
    for _ in range(MOST_FAILURES + 2):
        this = first_running()
        if this is None:
            break
        forget_requests()
        with suppress(ValueError):
            import_run(import_id=this.pk, turn=this.turn)
        now += 2 * STILL_AFTER
        imports_resume(now=now)
    later.refresh_from_db()
    assert later.state == ImportState.CHECKED
    broken.refresh_from_db()
    assert broken.state == ImportState.CANCELLED
    assert broken.stopped_by is not None
    assert broken.stopped_by["code"] == "import-keeps-failing"


def test_single_failure_stops_no_import(nora: User) -> None:
    this = begun(nora, checked(nora, "sites", sites(10)))
    this.refresh_from_db()
    with mock.patch.object(SITES, "open", side_effect=ValueError), pytest.raises(ValueError):
        import_run(import_id=this.pk, turn=this.turn)
    this.refresh_from_db()
    assert this.failures == 1
    assert counts(work(this)) == {"made": 10}
    this.refresh_from_db()
    assert (this.failures, this.state) == (0, ImportState.COMPLETED)


def test_finished_turn_requests_the_next(nora: User, monkeypatch: pytest.MonkeyPatch) -> None:
    this = staged(nora, "sites", sites(10))
    forget_requests()
    monkeypatch.setattr("portal.imports.operations._TURN_S", 0.0)
    import_run(import_id=this.pk, turn=0)
    this.refresh_from_db()
    # At least one row, so that an import progresses however short the turn is.
    assert this.done == 1
    assert requested() == [(celery_tasks.RUN_IMPORT, [str(this.pk), 1])]
    for turn in range(1, 11):
        import_run(import_id=this.pk, turn=turn)
    this.refresh_from_db()
    assert this.state == ImportState.CHECKED


def test_repeated_requests_keep_one_message(nora: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a long queue the import's message is not lost, and the sweep adds further messages."""
    staged(nora, "sites", sites(20))
    for n in range(4):
        imports_resume(now=clock.now() + timedelta(seconds=61 + 30 * n))
    assert len(sent()) == 3
    monkeypatch.setattr("portal.imports.operations._TURN_S", 0.0)
    for _ in range(5):
        deliver()
        assert len(sent()) == 1


def test_imports_run_one_after_the_other(nora: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.imports.operations._TURN_S", 0.0)
    first = staged(nora, "sites", sites(2), at_once=True)
    others = [staged(nora, "sites", f"name\nother {n}\n") for n in range(2)]
    deliver()
    assert sent() == [[str(first.pk), 1]]
    import_cancel(this=first, user=nora, now=clock.now())
    for _ in range(10):
        deliver()
    for each in others:
        each.refresh_from_db()
        assert each.state == ImportState.CHECKED


def sent() -> list[Any]:
    return [args for _, args in requested(celery_tasks.RUN_IMPORT)]


def deliver() -> None:
    """Deliver all waiting messages, but not those that they cause."""
    messages = sent()
    forget_requests()
    for identity, turn in messages:
        run_import(identity, turn)


def test_change_since_the_check_fails_only_its_row(nora: User) -> None:
    this = checked(nora, "sites", "name,latitude,longitude\nA,1,1\nB,2,2\nC,3,3\n")
    site_create(name="B", user=nora, now=clock.now())
    site_create(name="C", latitude=3, longitude=3, user=nora, now=clock.now())
    ended = work(begun(nora, this))
    assert counts(ended) == {"made": 1, "same": 1, "refused": 1}
    assert refusals(ended) == [(3, "", "row-differs")]


@pytest.mark.parametrize("error", [IntegrityError, KeyError, OverflowError])
def test_unexpected_error_fails_only_its_row(nora: User, error: type[Exception]) -> None:
    def make(**values: Any) -> Site:
        if values["name"] == "site 1":
            raise error("nobody foresaw this")
        return site_create(**values)

    with mock.patch("portal.imports.kinds.inventory.SITES.create", make):
        this = work(staged(nora, "sites", sites(3), at_once=True))
    assert (counts(this), refusals(this)) == ({"made": 2, "refused": 1}, [(3, "", "row-not-taken")])


def test_database_failure_leaves_the_batch_for_another_attempt(nora: User) -> None:
    def make(**_values: Any) -> Site:
        raise OperationalError("deadlock detected")

    this = staged(nora, "sites", sites(3), at_once=True)
    with mock.patch("portal.imports.kinds.inventory.SITES.create", make), pytest.raises(OperationalError):
        step(this)
    assert counts(work(this)) == {"made": 3}


def test_cancelled_import_stops_and_keeps_finished_rows(nora: User) -> None:
    this = staged(nora, "sites", sites(10), at_once=True)
    step(this)
    import_cancel(this=this, user=nora, now=clock.now())
    assert not step(this)
    this.refresh_from_db()
    assert (this.state, Site.objects.count()) == (ImportState.CANCELLED, 4)
    with pytest.raises(ImportIsOver):
        import_cancel(this=this, user=nora, now=clock.now())
    with pytest.raises(ImportIsOver):
        begun(nora, this)


def test_statements_per_batch_do_not_grow_with_unchanged_rows(nora: User) -> None:
    """The batch's savepoint takes two statements, and an existing row takes none."""

    def statements(count: int) -> int:
        Site.objects.all().delete()
        Site.objects.bulk_create(Site(name=f"site {n}") for n in range(count))
        this = staged(nora, "sites", sites(count))
        with CaptureQueriesContext(connection) as queries:
            step(this)
        return len(queries)

    assert statements(1) == statements(4)


def test_old_imports_are_deleted_with_their_rows(nora: User) -> None:
    old, running = checked(nora, "sites", sites(2)), staged(nora, "sites", sites(2))
    Import.objects.update(created_at=clock.now() - KEPT - timedelta(days=1))
    imports_forget(now=clock.now())
    assert list(Import.objects.all()) == [running]
    assert not ImportRow.objects.filter(owner_id=old.pk).exists()
