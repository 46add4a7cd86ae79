"""What people and API clients reach."""

from django.urls import include, path

from portal.api.netbox_hook import netbox_hook
from portal.api.openapi.page import docs
from portal.health import healthz, readyz

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("api/v1/", include("portal.api.v1.urls")),
    path("api/docs/", docs, name="api-docs"),
    path("api/netbox/hook/", netbox_hook, name="netbox-hook"),
    path("", include("portal.web.urls_sign_in")),
    path("", include("portal.web.urls")),
]
handler400 = "portal.last_resort.bad_request"
handler404 = "portal.last_resort.not_found"
handler500 = "portal.last_resort.server_error"
