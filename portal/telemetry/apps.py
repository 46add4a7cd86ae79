from django.apps import AppConfig


class TelemetryConfig(AppConfig):
    name = "portal.telemetry"

    def ready(self) -> None:
        from portal.telemetry import words  # noqa: F401 - registers the words for this app's errors
