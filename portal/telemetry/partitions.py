"""Partitions by day or month: created ahead, and dropped after their retention."""

import logging
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from django.conf import settings
from django.db import OperationalError, connection, transaction
from psycopg.errors import LockNotAvailable

from portal.core.db.advisory_locks import AdvisoryLock
from portal.core.db.each_row import each_row
from portal.telemetry.models import FrozenMonth
from portal.telemetry.rollup_tables import (
    FIVE_MINUTES,
    LOSS_SAMPLES,
    LOSS_TABLES,
    ROUND_TRIPS,
    SAMPLES,
    TABLES,
    Partition,
    Table,
)
from portal.telemetry.router_events import router_events_forget

log = logging.getLogger(__name__)

DAYS_AHEAD = 3
LOCK_TIMEOUT_MS = 2000


def partitions_keep(*, now: datetime) -> None:
    """Create the partitions of the next days, and drop partitions that are older than the retention of their
    table.

    Some partitions are kept at any age:

    * samples that are not yet rolled up;
    * 5-minute rows of months that are not yet frozen.

    The function also deletes old events of agents.
    """
    tables = (*TABLES, *LOSS_TABLES, *ROUND_TRIPS)
    each_row(tables, lambda table: _partitions_of(table, now), what="the partitions of a table")
    router_events_forget(before=now - timedelta(days=settings.LONGLINE_ROUTER_EVENT_DAYS))


def _partitions_of(table: Table, now: datetime) -> None:
    today = now.astimezone(UTC).date()
    partitions_ensure((today + timedelta(days=ahead) for ahead in range(-1, DAYS_AHEAD + 1)), table)
    oldest = (now - table.retention).astimezone(UTC).date()
    if table in (SAMPLES, LOSS_SAMPLES):
        oldest = min(oldest, _first_to_roll_up(table) or oldest)
    if table is FIVE_MINUTES:
        oldest = min([oldest, *months_unfrozen()])
    for partition in sorted(_existing(table), key=lambda one: one.first):
        if partition.end <= oldest:
            _drop(partition)


def _drop(partition: Partition) -> None:
    """Drop a partition. If it is in use for longer than LOCK_TIMEOUT_MS, leave it for the next round.

    Dropping a partition locks the whole table. While the drop waits for its lock, all other statements on the
    table wait behind it.
    """
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_MS}ms'")
            cursor.execute(f"DROP TABLE IF EXISTS {partition.name}")
    except OperationalError as error:
        if not isinstance(error.__cause__, LockNotAvailable):
            raise
        log.warning("%s is in use; it is dropped later", partition.name)


def partitions_ensure(days: Iterable[date], table: Table = SAMPLES) -> None:
    """Create the missing partitions of these days (UTC)."""
    wanted = {table.partition_of(day) for day in days}
    missing = wanted - _existing(table)
    if not missing:
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [AdvisoryLock.PARTITIONS])
        for partition in sorted(missing - _existing(table), key=lambda one: one.first):
            # Attaching a finished table blocks no reader or writer (PostgreSQL manual, 5.12).
            cursor.execute(f"CREATE TABLE {partition.name} (LIKE {table.name} INCLUDING CONSTRAINTS)")
            cursor.execute(
                f"ALTER TABLE {table.name} ATTACH PARTITION {partition.name}"
                f" FOR VALUES FROM ('{partition.first}T00:00:00Z') TO ('{partition.end}T00:00:00Z')"
            )


def _existing(table: Table) -> set[Partition]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
            " WHERE i.inhparent = %s::regclass",
            [table.name],
        )
        return {Partition.named(table, name) for (name,) in cursor.fetchall()}


def months_unfrozen() -> list[date]:
    """Return the first days of the months that have stored 5-minute rows and are not frozen, oldest first."""
    stored = {partition.first.replace(day=1) for partition in _existing(FIVE_MINUTES)}
    frozen = FrozenMonth.objects.filter(month__in=stored).values_list("month", flat=True)
    return sorted(stored.difference(frozen))


def _first_to_roll_up(table: Table) -> date | None:
    marks = "telemetry_stale_bucket" if table is SAMPLES else "telemetry_stale_loss_bucket"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT min(start_at) FROM {marks} WHERE step_s = 300")  # noqa: S608 - a constant
        (first,) = cursor.fetchone()
    return first.astimezone(UTC).date() if first else None
