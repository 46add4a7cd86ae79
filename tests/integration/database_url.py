"""The URL of the tests' database, for programs that run next to the tests."""

from urllib.parse import quote

from django.db import connection


def database_url() -> str:
    """Return the URL in the form that DATABASE_URL takes."""
    at = connection.settings_dict
    host = quote(at["HOST"], safe="")
    return f"postgres://{at['USER']}:{at['PASSWORD']}@{host}:{at['PORT']}/{at['NAME']}"
