from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "portal.api"

    def ready(self) -> None:
        # The import registers the extension with drf-spectacular.
        from portal.api.openapi import spectacular_hooks  # noqa: F401
