"""Announce a fact, or ask for a task, inside the caller's transaction."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from portal.core.request_id import current_request_id
from portal.events.models import Event, Outbox

CHANNEL = "longline_outbox"


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
) -> Event:
    """Record that ``kind`` happened. Must run in the transaction that made it true."""
    return Event.objects.create(
        at=now,
        kind=kind,
        customer_id=customer_id,
        vll_id=vll_id,
        order_id=order_id,
        router_id=router_id,
        actor=actor,
        request_id=current_request_id.get(),
        data=data or {},
    )


def send_task(task: str, *args: int | str, now: datetime) -> None:
    """Ask for ``task(*args)`` once this transaction commits; the relay wakes up by NOTIFY or by polling."""
    Outbox.objects.create(task=task, args=list(args), created_at=now)
    with connection.cursor() as cursor:
        cursor.execute(f"NOTIFY {CHANNEL}")
