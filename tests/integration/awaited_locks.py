"""Sessions of the tests' database that wait for a lock of another session."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connection, transaction

T = TypeVar("T")


def lock_is_awaited() -> bool:
    """Return whether a session waits for a lock of another session."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def concurrently(first: Callable[[], object], then: Callable[[], T]) -> tuple[bool, T]:
    """Run ``first`` in a transaction, and ``then`` in another session before the transaction is committed.

    Return whether ``then`` waited for a lock, and its result.
    """

    def in_its_own_session() -> T:
        try:
            return then()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            first()
            other = pool.submit(in_its_own_session)
            while not (waits := lock_is_awaited()) and not other.done():
                pass
        return waits, other.result()
