"""Sessions of PostgreSQL: advisory locks, direct connections, pipelines, and when to plan a statement.

Direct connections bypass any pooler, for work that needs a whole session: a pooler in transaction mode does
not support LISTEN or session-level locks. Pipelines send several statements without waiting for each result
(https://www.psycopg.org/psycopg3/docs/advanced/pipeline.html).
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import IntEnum, unique
from typing import Any

from django.conf import settings
from django.db import connection, connections, transaction
from django.http import HttpRequest, HttpResponse

from portal.core.http import Middleware


@unique
class AdvisoryLock(IntEnum):
    """The key of ``pg_advisory_lock(key)``, or the first key of ``pg_advisory_lock(key, key)``.

    The numbers are arbitrary, but two locks with the same number would wait for each other. The previous
    release uses these numbers while it runs next to this release. Change the number of a lock only if both
    releases may do the locked work at the same time.
    """

    UPGRADE = 0x4C4F4E47
    PARTITIONS = 7_305_001
    # Only one process at a time may roll up lines (ROLL_UPS) or losses (LOSS_ROLL_UPS). Otherwise a slower
    # process could overwrite newer results with older ones.
    ROLL_UPS = 7_305_002
    # The second key is the number of a 5-minute bucket, counted from the epoch. A process that stores samples
    # of the bucket shares the lock until it commits.
    STORED_SAMPLES = 7_305_003
    LOSS_ROLL_UPS = 7_305_004
    # Without this lock, two processes could both create a mail for the same reader, kind and cause.
    MAILS = 7_305_011
    IMPORTS = 7_305_012


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


@contextmanager
def pipelined() -> Iterator[None]:
    """Send the statements of the block without waiting for each result. The block's end waits for all
    results.

    If a statement fails, the server skips the following statements, and the block raises Django's error. A
    read of rows inside the block waits for its statement and all earlier statements. Use this function only
    within a transaction. Otherwise it raises RuntimeError.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("statements are sent together within a transaction")
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield


@contextmanager
def pipelined_transaction() -> Iterator[None]:
    """Run the block in a transaction, and send its statements, including COMMIT, in a pipeline.

    An error of a statement is raised later: by the next call that waits, or at the end of the block. Do not
    catch errors inside the block. Within the transaction of a caller, no pipeline is used.
    """
    # The pipeline must include COMMIT, which only the outermost block sends.
    is_outermost = not connection.in_atomic_block
    with ExitStack() as until_committed, transaction.atomic():
        if is_outermost:
            until_committed.enter_context(pipelined())
        yield


_READS = ("GET", "HEAD")


class PlanReadsWithValues(Middleware):
    """For GET and HEAD requests, let PostgreSQL plan each statement with its actual values.

    Other requests use one plan for all values (settings: DATABASE_PREPARE_AFTER). This suits orders, which
    read and write a few rows of any customer. But a page may read three rows for one customer, and half of
    the table for another. With one plan for all routers, the page of a router took ten times as long.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method not in _READS:
            return self.get_response(request)
        with connection.execute_wrapper(_plan_with_values):
            return self.get_response(request)


def _plan_with_values(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
    session = connection.connection
    before = session.prepare_threshold
    session.prepare_threshold = None
    try:
        return execute(sql, params, many, context)
    finally:
        session.prepare_threshold = before
