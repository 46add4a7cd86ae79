"""The paths for people and API clients."""

from django.urls import include, path

from portal.api.openapi.reference import errors, group, index
from portal.api.problem_details import ERRORS_PAGE
from portal.api.v1.network.netbox import netbox_hook
from portal.processes.health_checks import healthz, readyz

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("api/v1/", include("portal.api.v1.urls")),
    path("api/docs/", index, name="api-docs"),
    path(ERRORS_PAGE, errors, name="api-errors"),
    path("api/docs/<slug:group>/", group, name="api-docs"),
    path("api/netbox/hook/", netbox_hook, name="netbox-hook"),
    path("", include("portal.web.urls_sign_in")),
    path("", include("portal.web.urls")),
]
handler400 = "portal.processes.error_handlers.bad_request"
handler404 = "portal.processes.error_handlers.not_found"
handler500 = "portal.processes.error_handlers.server_error"
