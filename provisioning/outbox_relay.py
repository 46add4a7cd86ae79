"""Transfer of outbox rows to Celery: at least once, in no guaranteed order, across restarts."""

import json
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

import psycopg
from django.db import InterfaceError, OperationalError, connection, transaction
from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError

from portal.core import clock
from portal.core.db.sessions import direct_parameters
from portal.core.process_health import beat
from portal.events.models import Outbox
from portal.events.outbox import CHANNEL
from provisioning.task_publisher import Publisher

log = logging.getLogger(__name__)

BATCH = 200
POLL_S = 1.0
LONGEST_PAUSE_S = 5.0
# While psycopg waits for a notification, it raises its own errors, not Django's. A standby refuses LISTEN.
_OUTAGES = (
    OperationalError,
    InterfaceError,
    psycopg.OperationalError,
    psycopg.errors.ReadOnlySqlTransaction,
    BrokerError,
    RedisError,
    OSError,
)


def relay_batch(publisher: Publisher, *, now: datetime) -> int:
    """Publish the oldest unpublished rows, at most ``BATCH``; return their number.

    Rows are selected by state and never by "id greater than the last", because ids commit out of order.
    Messages are sent while the rows are locked: a crash in between repeats messages and loses none. No other
    code waits for these locks.
    """
    with transaction.atomic():
        rows = list(
            Outbox.objects.filter(published_at__isnull=True)
            .order_by("id")
            .select_for_update(skip_locked=True)
            .values_list("id", "task", "args")[:BATCH]
        )
        for task, args in _without_repetitions(rows):
            publisher.publish(task, args)
        Outbox.objects.filter(pk__in=[row[0] for row in rows]).update(published_at=now)
    return len(rows)


def relay_run(publisher: Publisher, *, stopped: Callable[[], bool], wait: Callable[[float], object]) -> None:
    """Relay until ``stopped()``. After a failure of PostgreSQL or the broker, wait longer each time."""
    pause = 0.1
    while not stopped():
        try:
            with psycopg.connect(**direct_parameters(), autocommit=True) as listener:
                listener.execute(f"LISTEN {CHANNEL}")
                while not stopped():
                    beat()
                    if relay_batch(publisher, now=clock.now()) == 0:
                        _wait_for_notification(listener)
                    pause = 0.1
        except _OUTAGES as error:
            log.warning("relay: %s: %s; retry in %.1f s", type(error).__name__, error, pause)
            publisher.close()
            connection.close()
            wait(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)
    publisher.close()
    connection.close()


def _without_repetitions(rows: list[tuple[int, str, list[Any]]]) -> list[tuple[str, list[Any]]]:
    """Remove repeated calls. Tasks are level-triggered, so two equal calls have the same effect as one."""
    return list({(task, json.dumps(args)): (task, args) for _, task, args in rows}.values())


def _wait_for_notification(listener: psycopg.Connection[Any]) -> None:
    """Return after a notification, or after ``POLL_S``: a notification may be missed."""
    for _ in listener.notifies(timeout=POLL_S, stop_after=1):
        pass
