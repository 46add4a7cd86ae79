"""What people and API clients reach."""

from django.urls import include, path

from portal.api.openapi.page import docs

urlpatterns = [
    path("api/v1/", include("portal.api.v1.urls")),
    path("api/docs/", docs, name="api-docs"),
    path("", include("portal.web.urls_sign_in")),
    path("", include("portal.web.urls")),
]
handler400 = "portal.last_resort.bad_request"
handler404 = "portal.last_resort.not_found"
handler500 = "portal.last_resort.server_error"
