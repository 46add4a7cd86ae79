"""The actions of users on an import, the turns of imports, and the handling of stalled and old imports."""

from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import F

from portal.accounts.models import Scope, User
from portal.celery_tasks import RUN_IMPORT
from portal.core.db.advisory_locks import AdvisoryLock
from portal.events.outbox import send_task
from portal.imports.errors import ImportIsOver, ImportKeepsFailing
from portal.imports.kinds import KINDS
from portal.imports.kinds.kind import Actor
from portal.imports.models import RUNNING, TRANSITIONS, Import, ImportState
from portal.imports.refusals import refusal_record

# This time is longer than a batch takes. An import without progress for this time has lost its worker or its
# message.
STILL_AFTER = timedelta(seconds=60)
# The number of consecutive attempts without a complete batch, after which the import is cancelled. The
# attempts are a minute apart.
MOST_FAILURES = 10
KEPT = timedelta(days=90)


@transaction.atomic
def import_begin(*, this: Import, actor: Actor, now: datetime) -> Import:
    """Start to import the rows that the check found new. ``actor`` is the user who confirms. Raises
    ImportIsOver.
    """
    locked = _locked(this)
    _move(locked, ImportState.IMPORTING)
    locked.begun_at = locked.moved_at = now
    locked.failures = 0
    locked.begun_by, locked.begun_with = actor.user, actor.token
    locked.save(update_fields=["state", "begun_at", "begun_by", "begun_with", "moved_at", "failures"])
    turn_next(locked, turn=locked.turn, now=now)
    return locked


@transaction.atomic
def import_cancel(*, this: Import, user: User, now: datetime) -> Import:
    """Cancel an import. Rows that are already imported stay. Waits for the current batch. Raises
    ImportIsOver.
    """
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

    If a user cancels the import, ``user`` is this user. If the portal cancels the import, ``stopped_by`` is
    the reason.
    """
    _move(this, state)
    this.ended_at, this.ended_by, this.stopped_by = now, user, stopped_by
    this.save(update_fields=["state", "ended_at", "ended_by", "stopped_by"])
    first_queue(now=now)


@transaction.atomic
def imports_resume(*, now: datetime) -> None:
    """If the worker or the message of the current import was lost, queue this import again. The current
    import is the one whose turn it is.
    """
    first = first_running()
    if first is None or first.moved_at >= now - STILL_AFTER:
        return
    # While a worker processes a batch of the import, the row is locked. Such an import has not stalled.
    waiting = Import.objects.select_for_update(skip_locked=True, no_key=True).filter(pk=first.pk)
    if waiting.exists():
        Import.objects.filter(pk=first.pk).update(moved_at=now)
        first_queue(now=now)


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
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [AdvisoryLock.IMPORTS])
        (taken,) = cursor.fetchone()
    return bool(taken)


def import_failed(this: Import, *, now: datetime) -> None:
    """End the turn after a failed batch and queue the next import. The sweeper later tries this
    import again.
    """
    Import.objects.filter(pk=this.pk).update(moved_at=now)
    following = first_running()
    if following is not None and following.pk != this.pk:
        first_queue(now=now)


def first_running() -> Import | None:
    """Return the import whose turn it is: the oldest of the imports with the fewest consecutive failures.

    All other imports wait, so that at most one message begins a turn. If only a newer release knows the kind
    of an import, the import waits for a worker of that release.
    """
    running = Import.objects.filter(state__in=RUNNING, kind__in=KINDS)
    return running.order_by("failures", "created_at", "pk").first()


def first_queue(*, now: datetime) -> None:
    """If an import waits for its turn, queue the import whose turn it is.

    Repeated calls are safe: only one of several messages for the same turn has an effect.
    """
    if first := first_running():
        send_task(RUN_IMPORT, str(first.pk), first.turn, now=now)


@transaction.atomic
def turn_next(this: Import, *, turn: int, now: datetime) -> None:
    """End the turn number ``turn`` of this import and queue its next turn.

    If several workers call this function for the same turn, only the first call has an effect.
    """
    if Import.objects.filter(pk=this.pk, turn=turn).update(turn=turn + 1):
        send_task(RUN_IMPORT, str(this.pk), turn + 1, now=now)


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
