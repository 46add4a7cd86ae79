"""The figures of the whole installation, read from PostgreSQL and Redis on each scrape.

The figures are read and not counted. They are therefore correct after any restart, and the same in every
process.
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
from portal.metrics.collectors import (
    certificates,
    leases,
    lines,
    losses,
    notifications,
    orders,
    outbox,
    paths,
    quarantine,
    queues,
    routers,
)

log = logging.getLogger(__name__)

# However many scrapes come, the tables are counted at most once in this time,
FRESH_S = 5.0
# and for at most 1/_REST of the time: 100,000 rows take some tenths of a second.
_REST = 50
# JIT compilation of one of the statements took ten times as long as running all of them.
_FOR_THIS_TRANSACTION = "SELECT set_config('statement_timeout', '10s', true), set_config('jit', 'off', true)"
_FROM_THE_DATABASE = tuple(
    part.families
    for part in (lines, paths, orders, outbox, routers, losses, quarantine, leases, notifications)
)


class Installation(Collector):
    """The collector of one registry; safe for threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._fresh_until: float | None = None
        self._families: list[Metric] = []

    def describe(self) -> list[Metric]:
        """Return nothing: registering the collector must not query the database."""
        return []

    def collect(self) -> list[Metric]:
        with self._lock:
            began = monotonic()
            if self._fresh_until is None or began > self._fresh_until:
                self._families = list(_read(clock.now()))
                self._fresh_until = monotonic() + fresh_for(monotonic() - began)
            return self._families


def fresh_for(taken_s: float) -> float:
    """Return the lifetime (s) of figures that took ``taken_s`` to read."""
    return max(FRESH_S, _REST * taken_s)


def _read(now: datetime) -> Iterator[Metric]:
    yield InfoMetricFamily("longline_build", "The portal's version.", {"version": _version()})
    yield from queues.families()
    yield from certificates.families()
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(_FOR_THIS_TRANSACTION)
            counted = [family for families in _FROM_THE_DATABASE for family in families(now)]
    except DatabaseError as error:
        log.warning("metrics: the database does not answer: %s", error)
        if not connection.is_usable():
            # No Django request ends here and closes the connection. The next scrape opens a new one.
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
