"""gunicorn's settings for the server-sent events of open pages.

    gunicorn --config python:portal.processes.gunicorn_live --bind 127.0.0.1:8001

Bind it to an address that the proxy can reach, as for the web process. The proxy buffers for slow clients.
"""

import asyncio
import os
from importlib import import_module
from typing import Any, cast

import django
from gunicorn.asgi.protocol import ASGIProtocol
from gunicorn.workers import gasgi

from portal.processes.gunicorn_common import GunicornLog, open_files_raise


class TimeoutProtocol(ASGIProtocol):
    """A connection on which the first request, with all its headers, must arrive within
    ``keepalive`` seconds.

    gunicorn limits the time until the next request of a connection, but not the time until the first request.
    A client could open any number of connections and send a byte now and then (CWE-400; "slowloris").
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # gunicorn stops this timer when the headers have arrived. A stream has no limit after that.
        self._arm_keepalive_timer()


class TimeoutWorker(gasgi.ASGIWorker):
    """gunicorn's own worker with TimeoutProtocol. The worker finds its protocol by a name in its module."""

    def init_process(self) -> None:
        gasgi.ASGIProtocol = cast("type[ASGIProtocol]", TimeoutProtocol)
        super().init_process()


wsgi_app = "portal.processes.gunicorn_live:application()"
worker_class = TimeoutWorker
asgi_loop = "asyncio"
asgi_lifespan = "on"
logger_class = GunicornLog
# One process serves thousands of pages. Each page has an asyncio task.
workers = 1
# Seconds until a connection's next request must arrive. TimeoutWorker applies them to the first one, too.
keepalive = 5
# Free the memory of a page as soon as the page is closed.
asgi_disconnect_grace_period = 0
# Do not wait for streams at shutdown: they never end on their own. Their pages connect again.
graceful_timeout = 1
# Only LONGLINE_TRUSTED_PROXIES decides which proxies' headers the portal believes (portal.core).
forwarded_allow_ips = ""
secure_scheme_headers: dict[str, str] = {}
# Each stream is an open file.
on_starting = open_files_raise


def application() -> Any:
    """Return the ASGI application. Its modules need Django."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "portal.processes.settings_live"
    django.setup()
    return import_module("portal.processes.live_events").LiveEvents()
