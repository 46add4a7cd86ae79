"""The WSGI application for Prometheus. ``portal.processes.gunicorn_metrics`` serves it."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup()

from portal.metrics.registry import application  # noqa: E402 - its modules need Django

__all__ = ["application"]
