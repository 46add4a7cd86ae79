from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class CoreConfig(AppConfig):
    name = "portal.core"

    def ready(self) -> None:
        # The module ``error_messages`` of each app registers its sentences when it is imported.
        autodiscover_modules("error_messages")
