"""gunicorn's settings for the metrics process, which Prometheus scrapes.

    gunicorn --config python:portal.processes.gunicorn_metrics --bind 127.0.0.1:9471

The process has no authentication. Bind it to loopback or to an address of the management network.
"""

import os
from importlib import import_module
from typing import Any

import django

from portal.processes.gunicorn_common import GunicornLog
from portal.processes.gunicorn_web import TimeoutWorker

wsgi_app = "portal.processes.gunicorn_metrics:application()"
worker_class = TimeoutWorker
logger_class = GunicornLog
threads = 2


def application() -> Any:
    """Return the WSGI application. Its modules need Django."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    return import_module("portal.metrics.registry").application
