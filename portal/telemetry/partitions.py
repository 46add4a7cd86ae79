"""Partitions by day or month: made ahead, and dropped when nobody may ask for them any more."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from django.db import connection, transaction

from portal.telemetry.models import QuarantinedSample
from portal.telemetry.tables import SAMPLES, TABLES, Partition, Table

DAYS_AHEAD = 3
# One lock for all who make partitions (pg_advisory_xact_lock); the number means nothing else.
_LOCK = 7_305_001


def partitions_keep(*, now: datetime) -> None:
    """Make the partitions of the days ahead, and drop all that is older than its table's retention.

    Samples that are still to be rolled up are kept, however long the worker was away.
    """
    today = now.astimezone(UTC).date()
    for table in TABLES:
        partitions_ensure((today + timedelta(days=ahead) for ahead in range(-1, DAYS_AHEAD + 1)), table)
        oldest = (now - table.retention).astimezone(UTC).date()
        if table is SAMPLES:
            oldest = min(oldest, _first_to_roll_up() or oldest)
        for partition in sorted(_existing(table), key=lambda one: one.first):
            if partition.end <= oldest:
                with connection.cursor() as cursor:
                    cursor.execute(f"DROP TABLE IF EXISTS {partition.name}")
    QuarantinedSample.objects.filter(received_at__lt=now - SAMPLES.retention).delete()


def partitions_ensure(days: Iterable[date], table: Table = SAMPLES) -> None:
    """Make the partitions of these days (UTC) that do not exist yet."""
    wanted = {table.partition_of(day) for day in days}
    missing = wanted - _existing(table)
    if not missing:
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        for partition in sorted(missing - _existing(table), key=lambda one: one.first):
            # Attaching a ready table locks out no reader or writer (PostgreSQL manual, 5.12).
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


def _first_to_roll_up() -> date | None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT min(start_at) FROM telemetry_stale_bucket WHERE step_s = 300")
        (first,) = cursor.fetchone()
    return first.astimezone(UTC).date() if first else None
