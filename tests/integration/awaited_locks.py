"""Sessions of the tests' database that wait for a lock."""

from concurrent.futures import Future
from typing import Any

from django.db import connection


def lock_is_awaited() -> bool:
    """Return whether a session waits for a lock of another session."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def wait_for_lock_or(other: Future[Any]) -> None:
    """Wait until a session waits for a lock, or until the other thread is done."""
    while not lock_is_awaited() and not other.done():
        pass
