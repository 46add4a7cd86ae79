"""Connections for gunicorn's ASGI worker, with a limit on the wait for a request.

gunicorn limits the wait for the next request of a connection (``keepalive``), but not for the first one. A
client could open any number of connections and send a byte now and then (CWE-400; "slowloris").
"""

import asyncio
from typing import cast

from gunicorn.asgi.protocol import ASGIProtocol
from gunicorn.workers import gasgi


class TimeoutProtocol(ASGIProtocol):
    """A connection whose first request, with all headers, must also arrive within ``keepalive`` seconds."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # gunicorn disarms the timer when the headers have arrived. A stream lasts as long as its page.
        self._arm_keepalive_timer()


class TimeoutWorker(gasgi.ASGIWorker):
    """gunicorn's own worker. It looks up its protocol by name in its module."""

    def init_process(self) -> None:
        gasgi.ASGIProtocol = cast("type[ASGIProtocol]", TimeoutProtocol)
        super().init_process()
