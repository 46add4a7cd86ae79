"""Settings with which gunicorn serves the agent API.

gunicorn --config python:portal.processes.gunicorn_agent_api --bind 0.0.0.0:8443

TLS 1.3 with required client certificates under our own CA; the view decides which router each one is.
"""

import resource
import ssl
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from portal.processes.gunicorn_logging import GunicornLog
from portal.processes.preloaded_objects import when_ready as when_ready
from portal.processes.socket_timeouts import TimeoutTlsSocket
from portal.settings import LONGLINE_PKI_DIR

wsgi_app = "portal.processes.wsgi_agent_api"
logger_class = GunicornLog
worker_class = "gthread"
threads = 8
# Each process has a listening socket of its own, and the kernel deals new connections out evenly: they are
# kept, so that a process stays as busy as what it once accepted makes it.
reuse_port = True
# Imported once: its processes share the memory, and start at once.
preload_app = True
# Longer than an agent keeps a connection idle (60 s): it is never closed under a report.
keepalive = 75
# An agent keeps two connections, each report on a new one would cost a TLS handshake.
worker_connections = 10_000
certfile = str(LONGLINE_PKI_DIR / "portal.pem")
keyfile = str(LONGLINE_PKI_DIR / "portal.key")
ca_certs = str(LONGLINE_PKI_DIR / "ca.pem")
cert_reqs = ssl.CERT_REQUIRED
# By when its files were written.
_contexts: dict[tuple[int, ...], ssl.SSLContext] = {}


def post_worker_init(worker: Any) -> None:
    """gunicorn's hook: while such a process works, routers' silence is no fault of the portal's."""
    import_module("portal.telemetry.agent_api_uptime").note_regularly(threads=worker.cfg.threads)


def ssl_context(config: Any, default_factory: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """gunicorn's hook, called for each connection: a renewed certificate needs no restart."""
    written = tuple(Path(file).stat().st_mtime_ns for file in (certfile, keyfile, ca_certs))
    context = _contexts.get(written)
    if context is None:
        context = default_factory()
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.sslsocket_class = TimeoutTlsSocket
        # Each connection shows its certificate: none is resumed on the word of an earlier one.
        context.num_tickets = 0
        _contexts.clear()
        _contexts[written] = context
    return context


def on_starting(server: Any) -> None:
    """gunicorn's hook: a process may open as many files as the system lets it: each connection is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65_536), most))
