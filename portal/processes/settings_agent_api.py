"""Settings of the agent API's process: the portal's settings, with other paths and without parts for
browsers.
"""

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
# A report on a broken connection gets 503, and the agent sends it again. A health check would cost one
# statement for each report.
DATABASES["default"]["CONN_HEALTH_CHECKS"] = False
# Only people sign in, and allauth requires its middleware wherever it is installed. Triggers write the audit
# trail. Only its readers need its models, which include those of second factors.
INSTALLED_APPS = [app for app in _APPS if not app.startswith("allauth") and app != "portal.audit"]
