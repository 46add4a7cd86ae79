"""Deleting old rows blocks no other work."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import connection

from portal.events.announcements import announce
from portal.events.models import Event
from portal.telemetry import partitioned_tables
from portal.telemetry.models import RouterEvent
from portal.telemetry.partitioned_tables import SAMPLES, partitions_ensure, partitions_keep
from portal.telemetry.router_events import EventReport, ReportedEvent, router_events_store
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
    monkeypatch.setattr(partitioned_tables, "LOCK_TIMEOUT_MS", 50)
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
def test_what_agents_say_has_happened_is_kept_as_long_as_the_setting_says(isp: Isp, settings: Any) -> None:
    settings.LONGLINE_ROUTER_EVENT_DAYS = 30
    rhino, boot = isp.routers["rhino"], str(uuid4())
    announce("router.held", now=NOW - timedelta(days=400), router_id=rhino.pk, actor="nora")
    for seq, days in ((1, 29), (2, 31)):
        # The clock of this agent has not been set.
        said = ReportedEvent(seq, 0, "link-down", "host-cust1", None, None, None, None)
        report = EventReport(boot_id=boot, sent_ms=1, events=(said,))
        router_events_store(router=rhino, report=report, now=NOW - timedelta(days=days))
    router_events_store(router=isp.routers["hippo"], report=report, now=NOW)
    partitions_keep(now=NOW)
    assert sorted(RouterEvent.objects.values_list("router__name", "seq")) == [("hippo", 2), ("rhino", 1)]
    left = Event.objects.filter(router_id__isnull=False).values_list("router_id", "kind", "data__seq")
    assert sorted(left, key=str) == sorted(
        [
            (rhino.pk, "router.held", None),
            (rhino.pk, "router.link-down", 1),
            (isp.routers["hippo"].pk, "router.link-down", 2),
        ],
        key=str,
    )
