"""Connections to PostgreSQL that bypass any pooler, for work that needs a whole session.

A pooler in transaction mode does not support LISTEN or session-level locks.
"""

from typing import Any

from django.conf import settings
from django.db import connection, connections

# Connection parameters of Django that libpq does not have.
_DJANGOS = frozenset({"context", "cursor_factory", "prepare_threshold"})


def direct_parameters() -> dict[str, Any]:
    """Return the parameters for psycopg.connect, without Django's adapters and cursors."""
    direct = connections[connection.alias].copy()
    direct.settings_dict.update(settings.DATABASE_DIRECT)
    return {name: value for name, value in direct.get_connection_params().items() if name not in _DJANGOS}


def connect_directly() -> None:
    """Close this process's connection, and let new connections bypass the pooler."""
    connection.close()
    connection.settings_dict.update(settings.DATABASE_DIRECT)
