"""gunicorn's settings for the agent API.

    gunicorn --config python:portal.processes.gunicorn_agent_api --bind 0.0.0.0:8443

Connections use TLS 1.3 and need a client certificate of the portal's own CA. The view finds the router that
the certificate belongs to.
"""

import ssl
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from portal.processes.gunicorn_common import GunicornLog, TimeoutTlsSocket, open_files_raise
from portal.processes.preloaded_objects import when_ready as when_ready
from portal.settings import LONGLINE_PKI_DIR

wsgi_app = "portal.processes.wsgi_agent_api"
logger_class = GunicornLog
worker_class = "gthread"
threads = 8
# Each process has its own listening socket, and the kernel distributes new connections evenly over the
# sockets. This matters because agents keep their connections open: each process has the load of all
# connections that it accepted.
reuse_port = True
# Import the code before the fork: the worker processes share its memory and start immediately.
preload_app = True
# Longer than the 60 s for which an agent keeps an idle connection. So the portal never closes a connection
# while the agent sends a report.
keepalive = 75
# Each agent keeps two connections open, because a TLS handshake per report would be expensive.
worker_connections = 10_000
# Each connection is an open file.
on_starting = open_files_raise
certfile = str(LONGLINE_PKI_DIR / "portal.pem")
keyfile = str(LONGLINE_PKI_DIR / "portal.key")
ca_certs = str(LONGLINE_PKI_DIR / "ca.pem")
cert_reqs = ssl.CERT_REQUIRED
# The TLS context made from the certificate files. The key is the modification times of the files.
_contexts: dict[tuple[int, ...], ssl.SSLContext] = {}


def post_worker_init(worker: Any) -> None:
    """gunicorn's hook: record from now on that this process runs.

    A router counts as silent only during times in which a process of the agent API ran.
    """
    import_module("portal.telemetry.router_silences").note_regularly(threads=worker.cfg.threads)


def ssl_context(config: Any, default_factory: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """gunicorn's hook for each connection: return a context with the newest certificate files.

    A renewed certificate is thus used without a restart.
    """
    written = tuple(Path(file).stat().st_mtime_ns for file in (certfile, keyfile, ca_certs))
    context = _contexts.get(written)
    if context is None:
        context = default_factory()
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.sslsocket_class = TimeoutTlsSocket
        # Disable TLS session resumption, so that each connection must present its certificate.
        context.num_tickets = 0
        _contexts.clear()
        _contexts[written] = context
    return context
