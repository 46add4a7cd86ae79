"""The figures of the whole installation, and the WSGI application that serves them to Prometheus.

Each scrape reads the figures from PostgreSQL and Redis. The processes do not count them in memory. The
figures are therefore correct after any restart, and the same in each process.

A separate process serves the application on an address for Prometheus only. ``/metrics`` describes the
installation and is the same on every machine. ``/metrics/processes`` describes the requests and tasks of the
processes on this machine.
"""

import logging
import tomllib
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from prometheus_client import CollectorRegistry, Metric, make_wsgi_app
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from portal.core import clock
from portal.metrics import families

log = logging.getLogger(__name__)

# Within this number of seconds, the tables are read at most once, even if Prometheus scrapes more often.
FRESH_S = 5.0
# Reading the tables takes at most 1/_REST of the time. For 100,000 rows, one reading takes tenths of a
# second.
_REST = 50
# JIT compilation is off: for one of the statements it took ten times as long as running all statements.
_FOR_THIS_TRANSACTION = "SELECT set_config('statement_timeout', '10s', true), set_config('jit', 'off', true)"
# Each yields metric families for a scrape.
_FROM_THE_DATABASE = (
    families.line_families,
    families.path_families,
    families.order_families,
    families.router_families,
    families.loss_families,
    families.lease_families,
    families.notification_families,
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
    yield from families.queue_families()
    yield from families.certificate_families()
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(_FOR_THIS_TRANSACTION)
            counted = [family for each in _FROM_THE_DATABASE for family in each(now)]
    except DatabaseError as error:
        log.warning("metrics: the database does not answer: %s", error)
        if not connection.is_usable():
            # No Django request closes this connection, so close it here. The next scrape opens a new one.
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


StartResponse = Callable[..., Any]
_PLAIN = [("Content-Type", "text/plain; charset=utf-8")]


def _apps() -> dict[str, Any]:
    installation = CollectorRegistry()
    installation.register(Installation())
    apps = {"/metrics": make_wsgi_app(installation)}
    if settings.LONGLINE_METRICS_DIR:
        Path(settings.LONGLINE_METRICS_DIR).mkdir(parents=True, exist_ok=True)
        processes = CollectorRegistry()
        MultiProcessCollector(processes, path=settings.LONGLINE_METRICS_DIR)
        apps["/metrics/processes"] = make_wsgi_app(processes)
    return apps


_served = _apps()


def application(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    app = _served.get(environ["PATH_INFO"])
    if environ["PATH_INFO"] == "/healthz":
        start_response("200 OK", _PLAIN)
        return [b"ok\n"]
    if app is None:
        start_response("404 Not Found", _PLAIN)
        return [f"Served here: {', '.join(_served)} and /healthz.\n".encode()]
    answer: Iterable[bytes] = app(environ, start_response)
    return answer
