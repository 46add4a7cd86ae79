"""The partitioned tables of counters and of round trips, from the finest to the coarsest.

The portal creates the partitions, one per day or month, ahead, and drops them after their retention.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.conf import settings
from django.db import OperationalError, connection, transaction
from psycopg.errors import LockNotAvailable

from portal.core.background_work import each_row
from portal.core.db.sessions import AdvisoryLock
from portal.core.db.statements import rows_of
from portal.telemetry.models import FrozenMonth
from portal.telemetry.router_events import router_events_forget


@dataclass(frozen=True, slots=True)
class Table:
    """A partitioned table. ``step_s``: the seconds per row; 0 if each row is a sample of an agent."""

    name: str
    step_s: int
    days_setting: str
    by_month: bool = False

    @property
    def retention(self) -> timedelta:
        return timedelta(days=getattr(settings, self.days_setting))

    def partition_of(self, day: date) -> "Partition":
        """Return the partition of this day (UTC)."""
        return Partition(self, day.replace(day=1) if self.by_month else day)


@dataclass(frozen=True, slots=True)
class Partition:
    """One day or one month of a table. ``first`` is its first day."""

    table: Table
    first: date

    @property
    def name(self) -> str:
        return f"{self.table.name}_{self.first:%Y%m%d}"

    @property
    def end(self) -> date:
        """The day after the last day."""
        if self.table.by_month:
            return (self.first + timedelta(days=31)).replace(day=1)
        return self.first + timedelta(days=1)

    @classmethod
    def named(cls, table: Table, name: str) -> "Partition":
        first = datetime.strptime(name.removeprefix(f"{table.name}_"), "%Y%m%d").replace(tzinfo=UTC)
        return cls(table, first.date())


SAMPLES = Table("telemetry_sample", 0, "LONGLINE_SAMPLE_DAYS")
FIVE_MINUTES = Table("telemetry_five_minutes", 300, "LONGLINE_FIVE_MINUTE_DAYS")
HOURS = Table("telemetry_hour", 3600, "LONGLINE_HOUR_DAYS", by_month=True)
DAYS = Table("telemetry_day", 86400, "LONGLINE_DAY_DAYS", by_month=True)
ROLLUPS = (FIVE_MINUTES, HOURS, DAYS)
TABLES = (SAMPLES, *ROLLUPS)
# Losses of routers and interfaces are kept as long as the counters of lines.
LOSS_SAMPLES = Table("telemetry_loss_sample", 0, "LONGLINE_SAMPLE_DAYS")
LOSS_ROLLUPS = (
    Table("telemetry_loss_five_minutes", 300, "LONGLINE_FIVE_MINUTE_DAYS"),
    Table("telemetry_loss_hour", 3600, "LONGLINE_HOUR_DAYS", by_month=True),
    Table("telemetry_loss_day", 86400, "LONGLINE_DAY_DAYS", by_month=True),
)
LOSS_TABLES = (LOSS_SAMPLES, *LOSS_ROLLUPS)
ROUND_TRIPS = (
    Table("telemetry_round_trips", 60, "LONGLINE_SAMPLE_DAYS"),
    Table("telemetry_round_trips_five_minutes", 300, "LONGLINE_FIVE_MINUTE_DAYS"),
    Table("telemetry_round_trips_hour", 3600, "LONGLINE_HOUR_DAYS", by_month=True),
    Table("telemetry_round_trips_day", 86400, "LONGLINE_DAY_DAYS", by_month=True),
)


def finest_kept(since: datetime, *, now: datetime, tables: Sequence[Table] = TABLES) -> Table:
    """Return the finest table that still has all data from ``since`` on; the coarsest if none has it."""
    return next((table for table in tables if since >= now - table.retention), tables[-1])


def coarsest_for(step_s: int, tables: Sequence[Table] = TABLES) -> Table:
    """Return the coarsest table whose rows add up to buckets of ``step_s``, else the finest table."""
    fitting = (table for table in reversed(tables) if table.step_s and step_s % table.step_s == 0)
    return next(fitting, tables[0])


log = logging.getLogger(__name__)

DAYS_AHEAD = 3
LOCK_TIMEOUT_MS = 2000


def partitions_keep(*, now: datetime) -> None:
    """Create the partitions of the next days, and drop partitions older than their table's retention.

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
    partitions = (
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
        " WHERE i.inhparent = %s::regclass"
    )
    return {Partition.named(table, name) for (name,) in rows_of(partitions, [table.name])}


def months_unfrozen() -> list[date]:
    """Return the first days of the months that have stored 5-minute rows and are not frozen, oldest first."""
    stored = {partition.first.replace(day=1) for partition in _existing(FIVE_MINUTES)}
    frozen = FrozenMonth.objects.filter(month__in=stored).values_list("month", flat=True)
    return sorted(stored.difference(frozen))


def _first_to_roll_up(table: Table) -> date | None:
    marks = "telemetry_stale_bucket" if table is SAMPLES else "telemetry_stale_loss_bucket"
    [(first,)] = rows_of(f"SELECT min(start_at) FROM {marks} WHERE step_s = 300")  # noqa: S608 - a constant
    return first.astimezone(UTC).date() if first else None
