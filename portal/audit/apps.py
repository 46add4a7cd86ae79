"""Installation of the audit triggers after each migrate. Only new and changed triggers are created.

By default, pgtrigger drops and creates all triggers each time. Each drop waits for all readers and writers of
the table. New readers and writers wait behind the drop.
"""

from typing import Any

import pgtrigger
from django.apps import AppConfig
from django.db.models.signals import post_migrate
from pgtrigger.core import INSTALLED


def triggers_install(*, using: str, **_: Any) -> None:
    """Install new and changed triggers, each in a separate transaction. Handles the signal post_migrate.

    A table is never without its trigger: it has the old trigger until the new trigger is committed.
    """
    for model, trigger in pgtrigger.registered():
        if trigger.get_installation_status(model, database=using) != (INSTALLED, True):
            trigger.install(model, database=using)
    pgtrigger.prune(database=using)


class AuditConfig(AppConfig):
    name = "portal.audit"

    def ready(self) -> None:
        post_migrate.connect(triggers_install, sender=self)
