"""What people and API clients reach."""

from django.urls import include, path

urlpatterns = [
    path("api/v1/", include("portal.api.v1.urls")),
    path("", include("portal.web.urls")),
]
