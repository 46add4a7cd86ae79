"""The tables of counters and of round trips, from the finest to the coarsest, with their retention."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.conf import settings


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
    """Return the coarsest table whose rows can be added up to buckets of ``step_s``; the finest table if
    there is none.
    """
    fitting = (table for table in reversed(tables) if table.step_s and step_s % table.step_s == 0)
    return next(fitting, tables[0])
