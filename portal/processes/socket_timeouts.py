"""Sockets for gunicorn's threads that wait for nobody for long.

A thread reads a request from a "blocking" socket: without bounds, as many clients as there are threads, each
sending a byte now and then, would shut everybody else out (CWE-400; "slowloris").
"""

import socket
import ssl
import time
from typing import Any

# Between two pieces, and for a whole request: headers and body, TLS handshake included.
STALL_S = 5.0
REQUEST_S = 60.0


class _Impatient(socket.socket):
    # Until when the request at hand must have come; None before the first one.
    _until: float | None = None

    def setblocking(self, flag: bool) -> None:
        """gunicorn's threads begin each request on a connection with this."""
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
    """A plain one."""


class TimeoutTlsSocket(_Impatient, ssl.SSLSocket):
    """One with TLS; its handshake too is bounded."""
