"""Installation of the audit triggers after each migrate: create those that differ, and leave the others
alone.

By default pgtrigger drops and creates every trigger each time. Each drop waits for all readers and writers of
the table, and blocks new ones.
"""

from typing import Any

import pgtrigger
from pgtrigger.core import INSTALLED


def triggers_install(*, using: str, **_: Any) -> None:
    """Install each trigger in a separate transaction: a table is never without its old or its new trigger.

    Handles post_migrate.
    """
    for model, trigger in pgtrigger.registered():
        if trigger.get_installation_status(model, database=using) != (INSTALLED, True):
            trigger.install(model, database=using)
    pgtrigger.prune(database=using)
