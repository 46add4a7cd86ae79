"""Record facts in the caller's transaction."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from portal.core.db.statements import execute, insert
from portal.core.http import current_request_id
from portal.events.models import Event

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
_ANNOUNCE_OF_LINES = """
INSERT INTO events_event (at, kind, vll_id, actor, request_id, data, untold)
SELECT at, %(kind)s, line, '', %(request_id)s, '{}', %(pending)s
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
        "pending": kind in NOTIFIED_KINDS,
    }
    execute(_ANNOUNCE_OF_LINES, values)
