"""The tests' database, for programs that are started beside them."""

from urllib.parse import quote

from django.db import connection


def database_url() -> str:
    """As DATABASE_URL takes it."""
    at = connection.settings_dict
    host = quote(at["HOST"], safe="")
    return f"postgres://{at['USER']}:{at['PASSWORD']}@{host}:{at['PORT']}/{at['NAME']}"
