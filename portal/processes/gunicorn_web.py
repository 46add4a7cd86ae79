"""gunicorn's settings for pages and the REST API.

gunicorn --config python:portal.processes.gunicorn_web --bind 127.0.0.1:8000
"""

import sys
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from portal.processes.gunicorn_common import GunicornLog, TimeoutSocket
from portal.processes.preloaded_objects import when_ready as when_ready


class TimeoutWorker(ThreadWorker):
    """gunicorn's own thread worker, with time limits for slow clients."""

    def handle(self, conn: Any) -> Any:
        if not conn.initialized and not isinstance(conn.sock, TimeoutSocket):
            conn.sock = TimeoutSocket(fileno=conn.sock.detach())
        return super().handle(conn)


# Seconds after which a computing thread must let other threads of its process run. Python's default is 5 ms.
#
# After each response of PostgreSQL, a request waits for the interpreter. If an export computes in the same
# process, the request waits for this interval. Measured with an export in each of two processes (medians of
# four rounds): orders take p50 47 ms and p99 260 ms with this interval, and 63 ms and 439 ms with the
# default. The exports take the same time with both.
SWITCH_INTERVAL_S = 0.0005

wsgi_app = "portal.wsgi"
logger_class = GunicornLog
worker_class = TimeoutWorker
threads = 4
# A process accepts only as many requests as it has threads. Further requests wait in the kernel, in the order
# of their arrival, for the next free process. Without this limit, a request can wait behind a slow request of
# the same process although another process is free. Measured with 16 clients at once: p95 is 113 ms instead
# of 158 ms (medians of three), with the same throughput.
worker_connections = threads
# Idle connections are closed: each would count against worker_connections and would stay with one process.
keepalive = 0
# Only LONGLINE_TRUSTED_PROXIES decides which proxies' headers are believed (portal.core). By default,
# gunicorn believes all headers from this machine and from Unix sockets.
forwarded_allow_ips = ""
secure_scheme_headers: dict[str, str] = {}
# Import the code before the fork: the worker processes share its memory and start immediately.
preload_app = True


def post_fork(server: Any, worker: Any) -> None:
    """gunicorn's hook: set how long a computing thread may keep the other threads of its process waiting."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
