"""The figures of the whole installation. Each scrape reads them from PostgreSQL and Redis.

The processes do not count them in memory. The figures are therefore correct after any restart, and the same
in each process.
"""

import logging
import tomllib
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from threading import Lock
from time import monotonic

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from portal.core import clock
from portal.metrics.collectors import lines, processes, routers

log = logging.getLogger(__name__)

# Within this number of seconds, the tables are read at most once, even if Prometheus scrapes more often.
FRESH_S = 5.0
# Reading the tables takes at most 1/_REST of the total time. With 100,000 rows, one reading takes some tenths
# of a second.
_REST = 50
# JIT compilation is off: for one of the statements it took ten times as long as running all statements.
_FOR_THIS_TRANSACTION = "SELECT set_config('statement_timeout', '10s', true), set_config('jit', 'off', true)"
# Each yields metric families for a scrape.
_FROM_THE_DATABASE = (
    lines.line_families,
    routers.path_families,
    lines.order_families,
    processes.outbox_families,
    routers.router_families,
    routers.loss_families,
    lines.lease_families,
    processes.notification_families,
)


class Installation(Collector):
    """The collector of the figures. Several threads may use it at once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._fresh_until: float | None = None
        self._families: list[Metric] = []

    def describe(self) -> list[Metric]:
        """Return nothing. Without this method, registering the collector would query the database."""
        return []

    def collect(self) -> list[Metric]:
        with self._lock:
            began = monotonic()
            if self._fresh_until is None or began > self._fresh_until:
                self._families = list(_read(clock.now()))
                self._fresh_until = monotonic() + fresh_for(monotonic() - began)
            return self._families


def fresh_for(taken_s: float) -> float:
    """Return the seconds for which figures are used again, if reading them took ``taken_s`` seconds."""
    return max(FRESH_S, _REST * taken_s)


def _read(now: datetime) -> Iterator[Metric]:
    yield InfoMetricFamily("longline_build", "The portal's version.", {"version": _version()})
    yield from processes.queue_families()
    yield from processes.certificate_families()
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(_FOR_THIS_TRANSACTION)
            counted = [family for families in _FROM_THE_DATABASE for family in families(now)]
    except DatabaseError as error:
        log.warning("metrics: the database does not answer: %s", error)
        if not connection.is_usable():
            # No Django request closes this connection, so close it here. The next scrape opens a new
            # connection.
            connection.close()
        counted = []
    yield GaugeMetricFamily(
        "longline_database_up", "1 if PostgreSQL answered all queries of the scrape.", bool(counted)
    )
    yield from counted


@cache
def _version() -> str:
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())
    return str(project["project"]["version"])
