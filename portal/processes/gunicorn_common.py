"""What several servers of gunicorn have in common: sockets with time limits, open files, and the log format.

A thread reads a request from a blocking socket. Without limits, slow clients that each send a byte now and
then could occupy all threads and so block other clients (CWE-400; "slowloris").
"""

import logging.config
import resource
import socket
import ssl
import time
from typing import Any

from gunicorn.glogging import Logger

from portal.settings import LOGGING

# Limits in seconds: between two pieces of a request, and for a whole request with TLS handshake and body.
STALL_S = 5.0
REQUEST_S = 60.0


class _Impatient(socket.socket):
    # The deadline of the current request. None before the first request.
    _until: float | None = None

    def setblocking(self, flag: bool) -> None:
        """Set the deadline. gunicorn's threads begin each request on a connection with this call."""
        if flag:
            self._until = time.monotonic() + REQUEST_S
        self.settimeout(None if flag else 0.0)

    def settimeout(self, value: float | None) -> None:
        super().settimeout(STALL_S if value is None else value)

    def recv(self, *args: Any) -> bytes:
        if self.gettimeout():
            now = time.monotonic()
            self._until = now + REQUEST_S if self._until is None else self._until
            if self._until <= now:
                raise TimeoutError("the request took too long to come")
            super().settimeout(min(STALL_S, self._until - now))
        return super().recv(*args)


class TimeoutSocket(_Impatient):
    """A socket without TLS, with time limits."""


class TimeoutTlsSocket(_Impatient, ssl.SSLSocket):
    """A socket with TLS. The limits apply to the handshake too."""


def open_files_raise(server: Any) -> None:
    """gunicorn's hook ``on_starting``: raise the limit of open files to the maximum."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65_536), most))


class GunicornLog(Logger):
    """gunicorn's messages in the portal's log format. portal.core.http logs requests."""

    def setup(self, cfg: Any) -> None:
        logging.config.dictConfig(LOGGING)
        self.cfg = cfg
        self.error_log.propagate = True

    def access(self, resp: Any, req: Any, environ: Any, request_time: Any) -> None:
        """Log nothing. The portal logs requests itself: it knows their ids and secret addresses."""
