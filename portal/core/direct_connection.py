"""Connections to PostgreSQL that bypass any pooler, for work that needs a session for itself.

A pooler in transaction mode carries no LISTEN and loses the locks of a session.
"""

from typing import Any

from django.conf import settings
from django.db import connection, connections

# Parameters that Django adds to those of libpq.
_DJANGOS = frozenset({"context", "cursor_factory", "prepare_threshold"})


def direct_parameters() -> dict[str, Any]:
    """Return parameters for psycopg.connect, without Django's adapters and cursors."""
    direct = connections[connection.alias].copy()
    direct.settings_dict.update(settings.DATABASE_DIRECT)
    return {name: value for name, value in direct.get_connection_params().items() if name not in _DJANGOS}


def connect_directly() -> None:
    """Make the connection of this process bypass the pooler from now on."""
    connection.close()
    connection.settings_dict.update(settings.DATABASE_DIRECT)
