"""The WSGI application for Prometheus. A separate process serves it on an address for Prometheus only.

``/metrics`` describes the installation and is the same on every machine. ``/metrics/processes`` describes the
requests and tasks of the processes on this machine.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from django.conf import settings
from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.multiprocess import MultiProcessCollector

from portal.metrics.registry import Installation

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
