"""Daily partitions of the samples: made ahead, and dropped when nobody may ask for them any more."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from django.conf import settings
from django.db import connection, transaction

from portal.telemetry.models import QuarantinedSample

DAYS_AHEAD = 3
_TABLE = "telemetry_sample"
_PREFIX = f"{_TABLE}_"
# One lock for all who make partitions (pg_advisory_xact_lock); the number means nothing else.
_LOCK = 7_305_001


def retention() -> timedelta:
    """How long samples are kept."""
    return timedelta(days=settings.LONGLINE_SAMPLE_DAYS)


def partitions_keep(*, now: datetime) -> None:
    """Make the partitions of the days ahead, and drop all samples that are older than the retention."""
    today = now.astimezone(UTC).date()
    partitions_ensure(today + timedelta(days=ahead) for ahead in range(-1, DAYS_AHEAD + 1))
    oldest = (now - retention()).astimezone(UTC).date()
    for day in sorted(_existing()):
        if day < oldest:
            with connection.cursor() as cursor:
                cursor.execute(f"DROP TABLE IF EXISTS {_name(day)}")
    QuarantinedSample.objects.filter(received_at__lt=now - retention()).delete()


def partitions_ensure(days: Iterable[date]) -> None:
    """Make the partitions of these days (UTC) that do not exist yet."""
    missing = set(days) - _existing()
    if not missing:
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        for day in sorted(missing - _existing()):
            # Attaching a ready table locks out no reader or writer (PostgreSQL manual, 5.12).
            cursor.execute(f"CREATE TABLE {_name(day)} (LIKE {_TABLE} INCLUDING CONSTRAINTS)")
            cursor.execute(
                f"ALTER TABLE {_TABLE} ATTACH PARTITION {_name(day)}"
                f" FOR VALUES FROM ('{day}T00:00:00Z') TO ('{day + timedelta(days=1)}T00:00:00Z')"
            )


def _existing() -> set[date]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
            " WHERE i.inhparent = %s::regclass",
            [_TABLE],
        )
        return {
            datetime.strptime(name.removeprefix(_PREFIX), "%Y%m%d").replace(tzinfo=UTC).date()
            for (name,) in cursor.fetchall()
        }


def _name(day: date) -> str:
    return f"{_PREFIX}{day:%Y%m%d}"
