"""Settings with which gunicorn serves pages and the REST API.

gunicorn --config python:portal.processes.gunicorn_web --bind 127.0.0.1:8000
"""

import sys
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from portal.processes.gunicorn_logging import GunicornLog
from portal.processes.preloaded_objects import when_ready as when_ready
from portal.processes.socket_timeouts import TimeoutSocket


class TimeoutWorker(ThreadWorker):
    """gunicorn's own threads, which no slow client can hold for long."""

    def handle(self, conn: Any) -> Any:
        if not conn.initialized and not isinstance(conn.sock, TimeoutSocket):
            conn.sock = TimeoutSocket(fileno=conn.sock.detach())
        return super().handle(conn)


# After each answer of PostgreSQL's a request waits for the interpreter: beside an export that computes in the
# same process, for as long as Python lets a thread go on, which is 5 ms. With an export in each of two
# processes orders take p50 47 and p99 260 ms with this interval, 63 and 439 ms with Python's (medians of four
# rounds); exports take as long.
SWITCH_INTERVAL_S = 0.0005

wsgi_app = "portal.wsgi"
logger_class = GunicornLog
worker_class = TimeoutWorker
threads = 4
# A process takes what it has a thread for; all else waits in the kernel, first come first served, for
# whichever process is free. Without it a request can wait behind a slow one of the process that happened to
# take it. With 16 clients at once: p95 113 ms instead of 158 (medians of three), as many orders a second.
worker_connections = threads
# What is kept open would count above, and stays with the process that took it.
keepalive = 0
# Whose proxy headers are believed is for LONGLINE_TRUSTED_PROXIES alone to say (portal.core): gunicorn would
# believe whatever comes from this machine, and from Unix sockets.
forwarded_allow_ips = ""
secure_scheme_headers: dict[str, str] = {}
# Imported once: its processes share the memory, and start at once.
preload_app = True


def post_fork(server: Any, worker: Any) -> None:
    """gunicorn's hook: a thread that computes soon lets the others of its process on."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
