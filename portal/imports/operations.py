"""What people do with an import, and what becomes of one that stands still or is old."""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from portal.accounts.models import Scope, User
from portal.events.outbox import send_tasks
from portal.imports.errors import ImportIsOver
from portal.imports.kinds.kind import Actor
from portal.imports.models import RUNNING, TRANSITIONS, Import, ImportState
from portal.imports.task_names import RUN

# Longer than a batch takes: one that did not move since was lost.
STILL_AFTER = timedelta(seconds=60)
KEPT = timedelta(days=90)


@transaction.atomic
def import_begin(*, this: Import, actor: Actor, now: datetime) -> Import:
    """Have the rows imported that were found new, from now on as ``actor``. Raises ImportIsOver."""
    locked = _locked(this)
    _move(locked, ImportState.IMPORTING)
    locked.begun_at = locked.moved_at = now
    locked.begun_by, locked.begun_with = actor.user, actor.token
    locked.save(update_fields=["state", "begun_at", "begun_by", "begun_with", "moved_at"])
    send_tasks(RUN, [[str(locked.pk)]], now=now)
    return locked


@transaction.atomic
def import_cancel(*, this: Import, user: User, now: datetime) -> Import:
    """Go no further; what is imported stays. Waits for the batch that is being done. Raises ImportIsOver."""
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
    """End an import that the caller has locked; ``user`` is who cancels it. Raises ImportIsOver."""
    _move(this, state)
    this.ended_at, this.ended_by, this.stopped_by = now, user, stopped_by
    this.save(update_fields=["state", "ended_at", "ended_by", "stopped_by"])


@transaction.atomic
def imports_resume(*, now: datetime) -> None:
    """Ask again for those whose worker was killed, or whose message was lost."""
    still = Import.objects.filter(state__in=RUNNING, moved_at__lt=now - STILL_AFTER)
    calls = [[str(pk)] for pk in still.order_by("moved_at").values_list("pk", flat=True)]
    send_tasks(RUN, calls, now=now)


def imports_forget(*, now: datetime) -> None:
    """Old ones go, with what was in their files."""
    Import.objects.filter(created_at__lt=now - KEPT).exclude(state__in=RUNNING).delete()


def actor_of(this: Import, *, now: datetime) -> Actor | None:
    """Who has it checked or, once it is begun, imported, with the rights that they have by now.

    None where account or token is over.
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
    if state not in TRANSITIONS[this.state]:
        raise ImportIsOver(state=this.state)
    this.state = state
