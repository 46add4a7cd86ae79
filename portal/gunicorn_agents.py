"""How gunicorn serves the agent door: gunicorn --config python:portal.gunicorn_agents --bind 0.0.0.0:8443

TLS 1.3 with required client certificates under our own CA; the view decides which router each one is.
"""

import ssl
from collections.abc import Callable
from typing import Any

from portal.settings import LONGLINE_PKI_DIR

wsgi_app = "portal.wsgi_agents"
worker_class = "gthread"
threads = 8
# Longer than an agent keeps a connection idle (60 s): it is never closed under a report.
keepalive = 75
certfile = str(LONGLINE_PKI_DIR / "portal.pem")
keyfile = str(LONGLINE_PKI_DIR / "portal.key")
ca_certs = str(LONGLINE_PKI_DIR / "ca.pem")
cert_reqs = ssl.CERT_REQUIRED

_STALL_S = 5.0


class ImpatientSocket(ssl.SSLSocket):
    """A "blocking" socket that blocks for five seconds at most.

    The worker's threads shake hands on blocking sockets: without a bound, eight callers that send one
    byte each, and need no certificate for that, would shut all routers out.
    """

    def settimeout(self, value: float | None) -> None:
        super().settimeout(_STALL_S if value is None else value)

    def setblocking(self, flag: bool) -> None:
        self.settimeout(None if flag else 0.0)


def ssl_context(config: Any, default_factory: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """gunicorn's hook, called for each connection: a renewed certificate needs no restart."""
    context = default_factory()
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.sslsocket_class = ImpatientSocket
    return context
