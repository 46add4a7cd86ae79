"""The triggers that write the trail, after each migrate: made anew where they differ, else left alone.

pgtrigger's own way drops and makes every one each time. Each drop locks out all readers and writers of its
table, and waits for those that are there.
"""

from typing import Any

import pgtrigger
from pgtrigger.core import INSTALLED


def triggers_install(*, using: str, **_: Any) -> None:
    """Each in a transaction of its own: at no moment is a table without its trigger, the earlier or this one.

    Handles post_migrate.
    """
    for model, trigger in pgtrigger.registered():
        if trigger.get_installation_status(model, database=using) != (INSTALLED, True):
            trigger.install(model, database=using)
    pgtrigger.prune(database=using)
