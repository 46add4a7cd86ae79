"""Record a fact, or request a task, in the caller's transaction."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet
from psycopg.types.json import Jsonb

from portal.core.db.compiled_insert import insert
from portal.core.http.request_log import current_request_id
from portal.events.models import Event

CHANNEL = "longline_outbox"
# The kinds of events that lead to webhooks or mails. portal.notifications defines the content of both.
_NOTIFIED_KINDS = (
    "order.acknowledged order.held order.inProgress order.completed order.failed order.rejected "
    "order.cancelled order.overdue vll.active vll.suspended vll.pendingTerminate vll.terminated "
    "vll.cancelled vll.described vll.op-up vll.op-down vll.op-unknown vll.in_sync vll.drift vll.not_carried "
    "line_test.scheduled vll.black_hole vll.black_hole_gone vll.link_loss_forwarded vll.link_loss_over "
    "line_test.passed line_test.failed line_test.not_tested trouble.reported trouble.closed router.silent "
    "router.reporting webhook.disabled webhook.receiver_changed account.password_reset_asked account.opened "
    "account.email_change_asked account.email_changed"
)
NOTIFIED_KINDS = frozenset(_NOTIFIED_KINDS.split())
# A message that a sweeper sent may wait for a worker this long. After this time, the message counts as lost
# and is sent again. If each sweep sent it again, overloaded workers would process nothing but repeated
# messages.
_RESENT_IS_LOST_AFTER = timedelta(seconds=30)
_SEND = f"""
INSERT INTO events_outbox (task, args, created_at)
SELECT %(task)s, args, %(now)s FROM jsonb_array_elements(%(calls)s) AS args, pg_notify('{CHANNEL}', '')
"""  # noqa: S608 - a constant
_ANNOUNCE_OF_LINES = """
INSERT INTO events_event (at, kind, vll_id, actor, request_id, data, untold)
SELECT at, %(kind)s, line, '', %(request_id)s, '{}', %(untold)s
FROM unnest(%(lines)s::uuid[], %(at)s::timestamptz[]) AS happened (line, at)
"""


def announce(
    kind: str,
    *,
    now: datetime,
    customer_id: int | None = None,
    vll_id: UUID | None = None,
    order_id: UUID | None = None,
    router_id: int | None = None,
    actor: str = "",
    data: dict[str, Any] | None = None,
) -> None:
    """Record the event ``kind``. Must run in the transaction that makes the fact true."""
    insert(
        Event(
            at=now,
            kind=kind,
            customer_id=customer_id,
            vll_id=vll_id,
            order_id=order_id,
            router_id=router_id,
            actor=actor,
            request_id=current_request_id.get(),
            data=data or {},
            pending_notification=kind in NOTIFIED_KINDS,
        )
    )


def announce_of_lines(kind: str, at: Mapping[UUID, datetime]) -> None:
    """Record the event ``kind`` of several lines. ``at`` has the time of the event for each line.

    Must run in the transaction that makes the facts true.
    """
    if not at:
        return
    values: dict[str, Any] = {
        "kind": kind,
        "lines": list(at),
        "at": list(at.values()),
        "request_id": current_request_id.get(),
        "untold": kind in NOTIFIED_KINDS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ANNOUNCE_OF_LINES, values)


def send_task(task: str, *args: int | str, now: datetime) -> None:
    """Request that Celery runs ``task(*args)`` after this transaction has committed.

    NOTIFY wakes up the relay; if the notification is lost, the relay finds the request by polling.
    """
    send_tasks(task, [args], now=now)


def send_tasks(task: str, calls: Iterable[Sequence[int | str]], *, now: datetime) -> None:
    """Request ``task(*args)`` for each ``args`` in ``calls``, with one SQL statement."""
    parameters: dict[str, Any] = {"task": task, "calls": Jsonb([list(args) for args in calls]), "now": now}
    with connection.cursor() as cursor:
        cursor.execute(_SEND, parameters)


def resend_tasks(task: str, rows: QuerySet[Any, Any], *, named_by: str, now: datetime) -> list[Any]:
    """Request ``task`` again for each row, with the attribute ``named_by`` of the row as argument. Return
    these values. For sweepers.

    Rows are left out if an earlier message may still wait for a worker. ``resent_at`` of a row records the
    request; the worker that claims the row clears it. Locked rows are skipped, because a worker processes
    them. The conditions of ``rows`` are checked after the lock was taken. Must run in a transaction.
    """
    lost = rows.exclude(resent_at__gt=now - _RESENT_IS_LOST_AFTER).select_for_update(skip_locked=True)
    found = dict(lost.order_by(named_by).values_list("pk", named_by))
    rows.model.objects.filter(pk__in=found).update(resent_at=now)
    requested = list(found.values())
    send_tasks(task, [(str(each) if isinstance(each, UUID) else each,) for each in requested], now=now)
    return requested
