from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "portal.api"

    def ready(self) -> None:
        # Registers itself with drf-spectacular by being imported.
        from portal.api.openapi import authentication  # noqa: F401
