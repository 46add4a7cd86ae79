from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class CoreConfig(AppConfig):
    name = "portal.core"

    def ready(self) -> None:
        # The words of each app register themselves by being imported.
        autodiscover_modules("error_messages")
