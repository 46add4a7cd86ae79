"""The figures of the whole installation, read from PostgreSQL and Redis when Prometheus asks.

Read rather than counted, so that they are right whatever restarts, and the same for every process.
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

# However many ask, and however often: the tables are counted no more often than that,
FRESH_S = 5.0
# and for no more than one part in so many of the time: 100,000 rows take some tenths of a second.
_REST = 50
# To compile one of the statements took ten times as long as all of them.
_FOR_THIS_TRANSACTION = "SELECT set_config('statement_timeout', '10s', true), set_config('jit', 'off', true)"
_FROM_THE_DATABASE = tuple(
    part.families
    for part in (lines, paths, orders, outbox, routers, losses, quarantine, leases, notifications)
)


class Installation(Collector):
    """For one registry; safe for threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._fresh_until: float | None = None
        self._families: list[Metric] = []

    def describe(self) -> list[Metric]:
        """Nothing: registering must not ask the database."""
        return []

    def collect(self) -> list[Metric]:
        with self._lock:
            began = monotonic()
            if self._fresh_until is None or began > self._fresh_until:
                self._families = list(_read(clock.now()))
                self._fresh_until = monotonic() + fresh_for(monotonic() - began)
            return self._families


def fresh_for(taken_s: float) -> float:
    """For how long (s) figures stand that took ``taken_s`` to read."""
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
            # No request ends here that would do so; the next scrape connects anew.
            connection.close()
        counted = []
    yield GaugeMetricFamily(
        "longline_database_up", "1 if PostgreSQL answered all that was asked of it.", bool(counted)
    )
    yield from counted


@cache
def _version() -> str:
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())
    return str(project["project"]["version"])
