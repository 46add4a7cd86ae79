"""PostgreSQL past any pooler, for what a session of its own is needed for.

A pooler that gives each transaction another session carries no LISTEN, and loses a session's locks.
"""

from typing import Any

from django.conf import settings
from django.db import connection, connections

# What Django's connections have beside libpq's own parameters.
_DJANGOS = frozenset({"context", "cursor_factory", "prepare_threshold"})


def direct_parameters() -> dict[str, Any]:
    """For psycopg.connect, with neither Django's adapters nor its cursors."""
    direct = connections[connection.alias].copy()
    direct.settings_dict.update(settings.DATABASE_DIRECT)
    return {name: value for name, value in direct.get_connection_params().items() if name not in _DJANGOS}


def connect_directly() -> None:
    """From now on this process' own connection goes past the pooler too."""
    connection.close()
    connection.settings_dict.update(settings.DATABASE_DIRECT)
