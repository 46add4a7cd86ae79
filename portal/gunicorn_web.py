"""How gunicorn serves the web door: gunicorn --config python:portal.gunicorn_web --bind 127.0.0.1:8000"""

from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from portal.gunicorn_log import GunicornLog
from portal.impatience import ImpatientSocket


class ImpatientWorker(ThreadWorker):
    """gunicorn's own threads, which no slow client can hold for long."""

    def handle(self, conn: Any) -> Any:
        if not conn.initialized and not isinstance(conn.sock, ImpatientSocket):
            conn.sock = ImpatientSocket(fileno=conn.sock.detach())
        return super().handle(conn)


wsgi_app = "portal.wsgi"
logger_class = GunicornLog
worker_class = ImpatientWorker
threads = 4
# A connection kept open stays with the process that took it, however busy that is; new ones go to whoever has
# time. With 16 clients at once 181 orders/s instead of 126, p95 143 ms instead of 154 (medians of three).
keepalive = 0
# Imported once: its processes share the memory, and start at once.
preload_app = True
