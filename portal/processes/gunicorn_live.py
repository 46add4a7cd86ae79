"""gunicorn's settings for the server-sent events of open pages.

    gunicorn --config python:portal.processes.gunicorn_live --bind 127.0.0.1:8001

Bind it to an address that the proxy can reach, as for the web process. For slow clients, the proxy buffers
the data.
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
# One process serves thousands of pages. Each page has an asyncio task.
workers = 1
# Seconds within which the next request of a connection must arrive. TimeoutWorker also applies this to the
# first request.
keepalive = 5
# Free the memory of a page as soon as the page is closed.
asgi_disconnect_grace_period = 0
# Do not wait for streams at shutdown: they never end on their own. Their pages connect again.
graceful_timeout = 1
# Only LONGLINE_TRUSTED_PROXIES decides which proxies' headers the portal believes (portal.core).
forwarded_allow_ips = ""
secure_scheme_headers: dict[str, str] = {}


def on_starting(server: Any) -> None:
    """gunicorn's hook: raise the limit of open files to the maximum. Each stream is an open file."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65_536), most))
