"""gunicorn's settings for server-sent events of open pages.

    gunicorn --config python:portal.processes.gunicorn_live --bind 127.0.0.1:8001

Bind it to an address that the proxy reaches, like the web process. The proxy buffers for slow clients.
"""

import resource
from typing import Any

from portal.processes.asgi_timeouts import TimeoutWorker
from portal.processes.gunicorn_logging import GunicornLog

wsgi_app = "portal.processes.asgi_live"
worker_class = TimeoutWorker
asgi_loop = "asyncio"
asgi_lifespan = "on"
logger_class = GunicornLog
# One process serves thousands of pages; each has its own task.
workers = 1
# A request has to arrive within this time (s): the first of a connection, and each after a response.
keepalive = 5
# Free the memory of a closed page immediately.
asgi_disconnect_grace_period = 0
# Streams never end on their own, and their pages reconnect. Waiting for them would not help.
graceful_timeout = 1
# Only LONGLINE_TRUSTED_PROXIES decides which proxy headers to believe (portal.core).
forwarded_allow_ips = ""
secure_scheme_headers: dict[str, str] = {}


def on_starting(server: Any) -> None:
    """gunicorn's hook: raise the limit of open files to the maximum, because each stream is a file."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65_536), most))
