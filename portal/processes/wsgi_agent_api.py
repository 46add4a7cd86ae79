"""The WSGI application of the agent API. ``portal.processes.gunicorn_agent_api`` serves it."""

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from django.core.wsgi import get_wsgi_application

os.environ["DJANGO_SETTINGS_MODULE"] = "portal.processes.settings_agent_api"
_views = get_wsgi_application()
_uptime = import_module("portal.telemetry.router_silences")


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Handle a request. Meanwhile, this thread counts as busy, to measure the load of the process."""
    with _uptime.answering():
        return _views(environ, start_response)
