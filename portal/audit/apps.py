from django.apps import AppConfig
from django.db.models.signals import post_migrate

from portal.audit.post_migrate import triggers_install


class AuditConfig(AppConfig):
    name = "portal.audit"

    def ready(self) -> None:
        post_migrate.connect(triggers_install, sender=self)
