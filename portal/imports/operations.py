"""The actions of users on an import, the turns and the batches of imports, and stalled and old imports.

A check runs in a transaction that is rolled back; an import is committed. The state of a row shows whether it
still has to be processed. The states are written in the same transaction as the batch. If a worker is killed,
its batch is therefore either complete or absent, and the next worker continues with the remaining rows.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from math import inf
from time import monotonic
from typing import Any
from uuid import UUID

from django.db import DatabaseError, InterfaceError, OperationalError, transaction
from django.db.models import F

from portal.accounts.models import Scope, User
from portal.audit.actor import working
from portal.celery_tasks import RUN_IMPORT
from portal.core import clock
from portal.core.db.sessions import AdvisoryLock
from portal.core.db.statements import rows_of
from portal.core.errors import DomainError
from portal.core.http import current_request_id
from portal.events.task_requests import send_task
from portal.imports.errors import (
    ImportIsOver,
    ImportKeepsFailing,
    ImportNotAllowed,
    RowDiffers,
    RowNotTaken,
    refusal_record,
)
from portal.imports.kinds import KINDS
from portal.imports.kinds.kind import Actor, Batch, Kind, RowValues
from portal.imports.models import RUNNING, TRANSITIONS, Import, ImportRow, ImportState

# Longer than a batch takes. An import without progress for this time has lost its worker or its message.
STILL_AFTER = timedelta(seconds=60)
# The number of consecutive attempts without a complete batch, after which the import is cancelled. The
# attempts are a minute apart.
MOST_FAILURES = 10
KEPT = timedelta(days=90)


@transaction.atomic
def import_begin(*, this: Import, actor: Actor, now: datetime) -> Import:
    """Start the import of the rows that are new, for ``actor``, who confirms. Raises ImportIsOver."""
    locked = _locked(this)
    _move(locked, ImportState.IMPORTING)
    locked.begun_at = locked.moved_at = now
    locked.failures = 0
    locked.begun_by, locked.begun_with = actor.user, actor.token
    locked.save(update_fields=["state", "begun_at", "begun_by", "begun_with", "moved_at", "failures"])
    turn_next(locked, turn=locked.turn)
    return locked


@transaction.atomic
def import_cancel(*, this: Import, user: User, now: datetime) -> Import:
    """Cancel an import after its current batch. Imported rows stay. Raises ImportIsOver."""
    locked = _locked(this)
    import_end(locked, ImportState.CANCELLED, user=user, now=now)
    return locked


def import_end(
    this: Import,
    state: ImportState,
    *,
    now: datetime,
    user: User | None = None,
    stopped_by: dict[str, Any] | None = None,
) -> None:
    """End an import. The caller must have locked it. Raises ImportIsOver.

    ``user``: the user who cancels the import. ``stopped_by``: the reason if the portal cancels it.
    """
    _move(this, state)
    this.ended_at, this.ended_by, this.stopped_by = now, user, stopped_by
    this.save(update_fields=["state", "ended_at", "ended_by", "stopped_by"])
    first_queue()


@transaction.atomic
def imports_resume(*, now: datetime) -> None:
    """Queue the import whose turn it is again, if its worker or its message was lost."""
    first = first_running()
    if first is None or first.moved_at >= now - STILL_AFTER:
        return
    # While a worker processes a batch of the import, the row is locked. Such an import has not stalled.
    waiting = Import.objects.select_for_update(skip_locked=True, no_key=True).filter(pk=first.pk)
    if waiting.exists():
        Import.objects.filter(pk=first.pk).update(moved_at=now)
        first_queue()


@transaction.atomic
def import_try(this: Import, *, now: datetime) -> bool:
    """Count an attempt. Return whether the caller may process this import now.

    The attempt counts even if the worker is then killed. The first complete batch resets the count. An import
    that has failed too often is cancelled here. Return False if a batch of another import is in progress.
    When that import ends, it queues this import.
    """
    if not turn_take():
        return False
    locked = _locked(this)
    if not locked.is_running:
        return False
    if locked.failures >= MOST_FAILURES:
        import_end(locked, ImportState.CANCELLED, now=now, stopped_by=refusal_record(ImportKeepsFailing()))
        return False
    Import.objects.filter(pk=this.pk).update(failures=F("failures") + 1)
    return True


def turn_take() -> bool:
    """Lock the work on imports until the transaction ends. Return False if another worker has the lock.

    The lock is needed because an attempt counts as a failure until its first complete batch. Meanwhile,
    ``first_running`` may return another import, and without the lock another worker could begin that import.
    """
    [(taken,)] = rows_of("SELECT pg_try_advisory_xact_lock(%s)", [AdvisoryLock.IMPORTS])
    return bool(taken)


def import_failed(this: Import, *, now: datetime) -> None:
    """End the turn after a failed batch. Queue the next import. The sweeper later retries this one."""
    Import.objects.filter(pk=this.pk).update(moved_at=now)
    following = first_running()
    if following is not None and following.pk != this.pk:
        first_queue()


def first_running() -> Import | None:
    """Return the import whose turn it is: the oldest of the imports with the fewest consecutive failures.

    All other imports wait, so that at most one message begins a turn. If only a newer release knows the kind
    of an import, the import waits for a worker of that release.
    """
    running = Import.objects.filter(state__in=RUNNING, kind__in=KINDS)
    return running.order_by("failures", "created_at", "pk").first()


def first_queue() -> None:
    """If an import waits for its turn, queue the import whose turn it is.

    Repeated calls are safe: only one of several messages for the same turn has an effect.
    """
    if first := first_running():
        send_task(RUN_IMPORT, str(first.pk), first.turn)


@transaction.atomic
def turn_next(this: Import, *, turn: int) -> None:
    """End the turn number ``turn`` of this import and queue its next turn.

    If several workers call this function for the same turn, only the first call has an effect.
    """
    if Import.objects.filter(pk=this.pk, turn=turn).update(turn=turn + 1):
        send_task(RUN_IMPORT, str(this.pk), turn + 1)


def imports_forget(*, now: datetime) -> None:
    """Delete ended imports, and the contents of their files, after 90 days."""
    Import.objects.filter(created_at__lt=now - KEPT).exclude(state__in=RUNNING).delete()


def actor_of(this: Import, *, now: datetime) -> Actor | None:
    """Return the user whose rights apply to the import, with the user's present rights.

    This is the user who confirmed the import or, before the confirmation, the uploader. Return None if the
    account or the token is no longer valid.
    """
    user, token = this.acting
    if not user.is_active:
        return None
    if token is not None:
        if token.revoked_at is not None or (token.expires_at is not None and token.expires_at <= now):
            return None
        user.noc_powers_left_behind = Scope.NOC not in token.scopes
    return Actor(user=user, token=token)


def _locked(this: Import) -> Import:
    return Import.objects.select_for_update(no_key=True).get(pk=this.pk)


def _move(this: Import, state: ImportState) -> None:
    if state not in TRANSITIONS.get(this.state, ()):
        raise ImportIsOver(state=this.state)
    this.state = state


log = logging.getLogger(__name__)

# The length of a turn in seconds. After this time, the import completes only the batch that is in progress.
# Then other imports and tasks have their turn, because some tasks are due every five seconds.
_TURN_S = 2.0


def import_run(*, import_id: UUID, turn: int) -> None:
    """Process batches until no rows are left or the turn is over. After a turn, queue the import again.

    ``turn`` is the number of the turn, from the message. The function does nothing in two cases:

    * It is the turn of another import. When that import ends, it queues this import.
    * The turn with this number is over. A repeated message therefore has no effect.
    """
    until = monotonic() + _TURN_S
    this = first_running()
    if this is None or this.pk != import_id or this.turn != turn:
        return
    if not import_try(this, now=clock.now()):
        return
    try:
        while batch_run(import_id=import_id, now=clock.now(), until=until):
            if monotonic() >= until:
                turn_next(this, turn=turn)
                return
    except Exception:
        # Without the database, the failure cannot be recorded. No other import could continue then, either.
        with suppress(DatabaseError, InterfaceError):
            import_failed(this, now=clock.now())
        raise


@transaction.atomic
def batch_run(*, import_id: UUID, now: datetime, until: float = inf) -> bool:
    """Process the next batch. Return whether a batch was processed.

    Return False if no rows are left, if the import has ended, or if another worker processes a batch. The
    first row is processed in any case. No further row is begun after ``until`` (seconds of the monotonic
    clock).
    """
    if not turn_take():
        return False
    found = Import.objects.select_for_update(skip_locked=True, of=("self",), no_key=True)
    this = (
        found.select_related("requested_by", "made_with", "begun_by", "begun_with")
        .filter(pk=import_id)
        .first()
    )
    if this is None or not this.is_running:
        return False
    kind, actor = KINDS[this.kind], actor_of(this, now=now)
    if actor is None or not kind.may_import(actor):
        refusal = ImportNotAllowed(username=this.acting[0].username)
        import_end(this, ImportState.CANCELLED, now=now, stopped_by=refusal_record(refusal))
        return False
    states = [ImportRow.State.WAITING]
    if this.state == ImportState.IMPORTING:
        states.append(ImportRow.State.NEW)
    rows = list(this.rows.filter(state__in=states).order_by("line")[: kind.batch])
    if not rows:
        _phase_end(this, now)
        return False
    who = {"user": actor.user.pk, "username": actor.user.get_username()}
    if actor.token is not None:
        who["token"] = actor.token.prefix
    request_id = current_request_id.set(this.origin)
    try:
        with working(request_id=this.origin, **who):
            _do(this, kind, rows, actor, now, until)
    finally:
        current_request_id.reset(request_id)
    this.moved_at, this.failures = now, 0
    this.save(update_fields=["moved_at", "failures", "new", "same", "refused", "made"])
    return True


def _phase_end(this: Import, now: datetime) -> None:
    if this.state == ImportState.IMPORTING:
        import_end(this, ImportState.COMPLETED, now=now)
        return
    this.state = ImportState.CHECKED
    this.save(update_fields=["state"])
    first_queue()


def _do(
    this: Import, kind: Kind, rows: Sequence[ImportRow], actor: Actor, now: datetime, until: float
) -> None:
    checking = this.state == ImportState.CHECKING
    done: list[tuple[ImportRow, str]] = []
    with transaction.atomic():
        values_of_rows = [kind.read(row.cells)[0] for row in rows]
        batch = kind.open(values_of_rows)
        for row, values in zip(rows, values_of_rows, strict=True):
            was = row.state
            _process(row, kind, batch, values, actor, now)
            done.append((row, was))
            if monotonic() >= until:
                break
        if checking:
            transaction.set_rollback(True)
    for row, was in done:
        if row.state == ImportRow.State.NEW and not checking:
            row.state = ImportRow.State.MADE
        if was != ImportRow.State.WAITING:
            setattr(this, was, getattr(this, was) - 1)
        setattr(this, row.state, getattr(this, row.state) + 1)
    ImportRow.objects.bulk_update([row for row, _was in done], ["state", "refusals"])


def _process(
    row: ImportRow, kind: Kind, batch: Batch, values: RowValues, actor: Actor, now: datetime
) -> None:
    """Check or import one row. A refused row changes nothing and does not affect other rows."""
    try:
        there = batch.find(values)
        if there is None:
            with transaction.atomic():
                batch.make(values, actor=actor, now=now)
            row.state = ImportRow.State.NEW
        elif differences := _differences(there, values):
            raise RowDiffers(name=kind.name(values), differences=differences)
        else:
            row.state = ImportRow.State.SAME
    except DomainError as refusal:
        row.state = ImportRow.State.REFUSED
        row.refusals = [refusal_record(each) for each in getattr(refusal, "refusals", (refusal,))]
    except (OperationalError, InterfaceError):
        # The database failed, not the row. The whole batch is tried again.
        raise
    except Exception:
        log.exception("import %s, line %d: the row cannot be imported", row.owner_id, row.line)
        row.state, row.refusals = ImportRow.State.REFUSED, [refusal_record(RowNotTaken())]


def _differences(there: Mapping[str, Any], values: RowValues) -> list[tuple[str, str, str]]:
    """Return a triple for each column in which the existing object differs from the file: column, existing
    value, value in the file.

    An empty cell matches any value.
    """
    return [
        (column, _shown(there[column]), _shown(value))
        for column, value in values.items()
        if there[column] != value
    ]


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return ":".join(value) if isinstance(value, tuple) else str(value)
