"""How gunicorn serves the agent door: gunicorn --config python:portal.gunicorn_agents --bind 0.0.0.0:8443

TLS 1.3 with required client certificates under our own CA; the view decides which router each one is.
"""

import ssl
from collections.abc import Callable
from importlib import import_module
from typing import Any

from portal.gunicorn_log import GunicornLog
from portal.impatience import ImpatientTlsSocket
from portal.settings import LONGLINE_PKI_DIR

wsgi_app = "portal.wsgi_agents"
logger_class = GunicornLog
worker_class = "gthread"
threads = 8
# Longer than an agent keeps a connection idle (60 s): it is never closed under a report.
keepalive = 75
certfile = str(LONGLINE_PKI_DIR / "portal.pem")
keyfile = str(LONGLINE_PKI_DIR / "portal.key")
ca_certs = str(LONGLINE_PKI_DIR / "ca.pem")
cert_reqs = ssl.CERT_REQUIRED


def post_worker_init(_worker: Any) -> None:
    """gunicorn's hook: while a process of the door works, routers' silence is no fault of the portal's."""
    import_module("portal.telemetry.door_uptime").note_regularly()


def ssl_context(config: Any, default_factory: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """gunicorn's hook, called for each connection: a renewed certificate needs no restart."""
    context = default_factory()
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.sslsocket_class = ImpatientTlsSocket
    return context
