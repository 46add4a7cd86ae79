"""Connections for gunicorn's ASGI worker that wait for no request for long.

gunicorn bounds how long the next request of a connection may take to come (``keepalive``), but not the first:
whoever opens connections and sends a byte now and then would keep as many open as they like (CWE-400;
"slowloris").
"""

import asyncio
from typing import cast

from gunicorn.asgi.protocol import ASGIProtocol
from gunicorn.workers import gasgi


class TimeoutProtocol(ASGIProtocol):
    """One whose first request must come within ``keepalive`` seconds too, all of its headers included."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # It is disarmed when the headers are there; a stream lasts as long as its page.
        self._arm_keepalive_timer()


class TimeoutWorker(gasgi.ASGIWorker):
    """gunicorn's own worker; it takes its protocol from its module by name."""

    def init_process(self) -> None:
        gasgi.ASGIProtocol = cast("type[ASGIProtocol]", TimeoutProtocol)
        super().init_process()
