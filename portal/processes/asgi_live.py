"""The ASGI application for server-sent events. ``portal.processes.gunicorn_live`` serves it."""

import os

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "portal.processes.settings_live"
django.setup()

from portal.processes.live_events import LiveEvents  # noqa: E402 - its modules need Django

application = LiveEvents()
