"""Connections of gunicorn's ASGI worker with a time limit for the first request.

gunicorn limits the time until the next request of a connection (``keepalive``), but not the time until the
first request. A client could open any number of connections and send a byte now and then (CWE-400;
"slowloris").
"""

import asyncio
from typing import cast

from gunicorn.asgi.protocol import ASGIProtocol
from gunicorn.workers import gasgi


class TimeoutProtocol(ASGIProtocol):
    """A connection on which the first request, with all its headers, must arrive within
    ``keepalive`` seconds.
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
