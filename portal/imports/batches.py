"""The batches of an import. A check runs in a transaction that is rolled back; an import is committed.

The state of a row shows whether it still has to be processed. The states are written in the same transaction
as the batch. If a worker is killed, its batch is therefore either complete or absent, and the next worker
continues with the remaining rows.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from math import inf
from time import monotonic
from typing import Any
from uuid import UUID

from django.db import DatabaseError, InterfaceError, OperationalError, transaction

from portal.audit.actor import working
from portal.core import clock
from portal.core.errors import DomainError
from portal.core.http.request_id import current_request_id
from portal.imports.errors import ImportNotAllowed, RowDiffers, RowNotTaken
from portal.imports.kinds import KINDS
from portal.imports.kinds.kind import Actor, Batch, Kind, RowValues
from portal.imports.models import Import, ImportRow, ImportState
from portal.imports.operations import (
    actor_of,
    first_queue,
    first_running,
    import_end,
    import_failed,
    import_try,
    turn_next,
    turn_take,
)
from portal.imports.refusals import refusal_record

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
                turn_next(this, turn=turn, now=clock.now())
                return
    except Exception:
        # If the database cannot be reached, the failure cannot be recorded. No other import could continue
        # then either.
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
    first_queue(now=now)


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
