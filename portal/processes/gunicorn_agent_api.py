"""gunicorn's settings for the agent API.

    gunicorn --config python:portal.processes.gunicorn_agent_api --bind 0.0.0.0:8443

TLS 1.3 with required client certificates of the portal's own CA. The view maps each certificate to a router.
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
# Each process has its own listening socket, and the kernel distributes new connections evenly. Agents keep
# their connections open, so the load of a process depends on the connections that it has accepted.
reuse_port = True
# Import once: worker processes share the memory and start immediately.
preload_app = True
# Longer than an agent keeps a connection idle (60 s): it is never closed under a report.
keepalive = 75
# An agent keeps two connections, because a TLS handshake for each report would be expensive.
worker_connections = 10_000
certfile = str(LONGLINE_PKI_DIR / "portal.pem")
keyfile = str(LONGLINE_PKI_DIR / "portal.key")
ca_certs = str(LONGLINE_PKI_DIR / "ca.pem")
cert_reqs = ssl.CERT_REQUIRED
# Contexts by the modification times of their files.
_contexts: dict[tuple[int, ...], ssl.SSLContext] = {}


def post_worker_init(worker: Any) -> None:
    """gunicorn's hook: record the uptime of this process, because silence counts only while a process
    listens.
    """
    import_module("portal.telemetry.agent_api_uptime").note_regularly(threads=worker.cfg.threads)


def ssl_context(config: Any, default_factory: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """gunicorn's hook for each connection: return a context with the newest certificate, without a
    restart.
    """
    written = tuple(Path(file).stat().st_mtime_ns for file in (certfile, keyfile, ca_certs))
    context = _contexts.get(written)
    if context is None:
        context = default_factory()
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.sslsocket_class = TimeoutTlsSocket
        # Each connection must show its certificate: no TLS session is resumed.
        context.num_tickets = 0
        _contexts.clear()
        _contexts[written] = context
    return context


def on_starting(server: Any) -> None:
    """gunicorn's hook: raise the limit of open files to the maximum, because each connection is a file."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65_536), most))
