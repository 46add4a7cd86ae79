"""The agent door's process: the same settings, other paths, and nothing that is meant for browsers."""

from portal.settings import *  # noqa: F403

ROOT_URLCONF = "portal.urls_agents"
WSGI_APPLICATION = "portal.wsgi_agents.application"
MIDDLEWARE = ["portal.core.request_id.RequestIdMiddleware"]
