"""gunicorn's settings for pages and the REST API.

gunicorn --config python:portal.processes.gunicorn_web --bind 127.0.0.1:8000
"""

import sys
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from portal.processes.gunicorn_logging import GunicornLog
from portal.processes.preloaded_objects import when_ready as when_ready
from portal.processes.socket_timeouts import TimeoutSocket


class TimeoutWorker(ThreadWorker):
    """gunicorn's own threads, with time limits for slow clients."""

    def handle(self, conn: Any) -> Any:
        if not conn.initialized and not isinstance(conn.sock, TimeoutSocket):
            conn.sock = TimeoutSocket(fileno=conn.sock.detach())
        return super().handle(conn)


# After each response of PostgreSQL a request waits for the interpreter. If an export computes in the same
# process, that wait lasts as long as Python lets a thread run, by default 5 ms. Measured with an export in
# each of two processes (medians of four rounds): orders take p50 47 ms and p99 260 ms with this interval, 63
# and 439 ms with Python's default. Exports take the same time.
SWITCH_INTERVAL_S = 0.0005

wsgi_app = "portal.wsgi"
logger_class = GunicornLog
worker_class = TimeoutWorker
threads = 4
# A process accepts only requests that it has a thread for. Other requests wait in the kernel, in order of
# arrival, for the next free process. Without this limit a request can wait behind a slow one of the same
# process. Measured with 16 clients at once: p95 113 ms instead of 158 ms (medians of three), same throughput.
worker_connections = threads
# A connection kept open would count against worker_connections and stay with one process.
keepalive = 0
# Only LONGLINE_TRUSTED_PROXIES decides which proxy headers to believe (portal.core). By default gunicorn
# believes all headers from this machine and from Unix sockets.
forwarded_allow_ips = ""
secure_scheme_headers: dict[str, str] = {}
# Import once: worker processes share the memory and start immediately.
preload_app = True


def post_fork(server: Any, worker: Any) -> None:
    """gunicorn's hook: shorten the interval after which a computing thread yields to the others of its
    process.
    """
    sys.setswitchinterval(SWITCH_INTERVAL_S)
