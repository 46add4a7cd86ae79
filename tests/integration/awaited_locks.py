"""Sessions of the tests' database that wait for a lock."""

from django.db import connection


def lock_is_awaited() -> bool:
    """Return whether a session waits for a lock of another session."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])
