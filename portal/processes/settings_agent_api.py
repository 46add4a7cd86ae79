"""The settings of the agent API's process.

They are the portal's settings with other URLs and without the parts for browsers.
"""

from portal.settings import *  # noqa: F403
from portal.settings import DATABASES
from portal.settings import INSTALLED_APPS as _APPS

ROOT_URLCONF = "portal.processes.urls_agent_api"
WSGI_APPLICATION = "portal.processes.wsgi_agent_api.application"
MIDDLEWARE = [
    "portal.metrics.requests_and_tasks.RequestMetricsMiddleware",
    "portal.core.http.RequestIdMiddleware",
]
# Health checks of database connections are off, because each would cost one more SQL statement per report. A
# report that meets a broken connection gets 503, and the agent sends it again.
DATABASES["default"]["CONN_HEALTH_CHECKS"] = False
# allauth is left out: agents do not sign in, and allauth would need its middleware. portal.audit is left out,
# because its models refer to allauth's models of second factors. The triggers write the audit trail without
# the app.
INSTALLED_APPS = [app for app in _APPS if not app.startswith("allauth") and app != "portal.audit"]
