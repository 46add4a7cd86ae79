"""The agent API's process: the same settings, other paths, and nothing that is meant for browsers."""

from portal.settings import *  # noqa: F403
from portal.settings import DATABASES
from portal.settings import INSTALLED_APPS as _APPS

ROOT_URLCONF = "portal.processes.urls_agent_api"
WSGI_APPLICATION = "portal.processes.wsgi_agent_api.application"
MIDDLEWARE = [
    "portal.metrics.http_requests.RequestMetricsMiddleware",
    "portal.core.request_log.RequestLogMiddleware",
    "portal.core.request_id.RequestIdMiddleware",
]
# A report on a connection that broke is answered with 503, and comes again: asking first would cost each of
# them a statement.
DATABASES["default"]["CONN_HEALTH_CHECKS"] = False
# Logging in is for people, and allauth insists on its middleware wherever it is installed. The audit trail is
# written by triggers; only who reads it needs its models, among them those of second factors.
INSTALLED_APPS = [app for app in _APPS if not app.startswith("allauth") and app != "portal.audit"]
