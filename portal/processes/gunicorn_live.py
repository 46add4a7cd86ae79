"""Settings with which gunicorn serves open pages with server-sent events.

gunicorn --config python:portal.processes.gunicorn_live --bind 127.0.0.1:8001

Bind it to where a proxy reaches it, as the web process: it is the proxy that outwaits slow clients.
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
# One process holds thousands of pages; each listens for itself.
workers = 1
# Within so many seconds a request has to come whole: the first of a connection, and each after an answer.
keepalive = 5
# A page that is closed is forgotten at once.
asgi_disconnect_grace_period = 0
# Streams never end by themselves: whoever has one opens another.
graceful_timeout = 1
# Whose proxy headers are believed is for LONGLINE_TRUSTED_PROXIES alone to say (portal.core).
forwarded_allow_ips = ""
secure_scheme_headers: dict[str, str] = {}


def on_starting(server: Any) -> None:
    """gunicorn's hook: a process may open as many files as the system lets it: each stream is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65_536), most))
