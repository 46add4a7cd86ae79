"""Old rows go without standing in anybody's way."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import connection

from portal.telemetry import partitions
from portal.telemetry.models import RouterEvent
from portal.telemetry.partitions import partitions_ensure, partitions_keep
from portal.telemetry.tables import SAMPLES
from tests.integration.isp import Isp

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
OLD = NOW - timedelta(days=9)


@pytest.fixture
def reader(transactional_db: None) -> Iterator[psycopg.Connection[Any]]:
    """Somebody else's connection."""
    parameters = connection.get_connection_params()
    names = ("dbname", "user", "password", "host", "port")
    with psycopg.connect(**{name: parameters[name] for name in names if name in parameters}) as other:
        yield other


def exists() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [SAMPLES.partition_of(OLD.date()).name])
        return bool(cursor.fetchone()[0])


def test_a_partition_that_is_being_read_is_dropped_in_a_later_round(
    reader: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "LOCK_TIMEOUT_MS", 50)
    partitions_ensure([OLD.date()])
    reader.execute("SELECT count(*) FROM telemetry_sample")
    # Without a bound the drop would wait for the reader, and all others behind the drop.
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = '20s'")
    partitions_keep(now=NOW)
    assert exists()
    reader.rollback()
    partitions_keep(now=NOW)
    assert not exists()
    with connection.cursor() as cursor:
        cursor.execute("RESET statement_timeout")


@pytest.mark.django_db
def test_events_are_known_for_repetitions_as_long_as_the_setting_says(isp: Isp, settings: Any) -> None:
    settings.LONGLINE_ROUTER_EVENT_DAYS = 30
    for seq, days in ((1, 29), (2, 31)):
        RouterEvent.objects.create(
            router=isp.routers["rhino"], boot_id=uuid4(), seq=seq, stored_at=NOW - timedelta(days=days)
        )
    partitions_keep(now=NOW)
    assert [row.seq for row in RouterEvent.objects.all()] == [1]
