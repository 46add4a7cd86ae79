from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    name = "portal.notifications"

    def ready(self) -> None:
        from portal.notifications import words  # noqa: F401 - registers the words for this app's errors
