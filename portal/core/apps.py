from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class CoreConfig(AppConfig):
    name = "portal.core"

    def ready(self) -> None:
        # The list of all error codes contains the subclasses of DomainError that have been imported.
        autodiscover_modules("errors")
