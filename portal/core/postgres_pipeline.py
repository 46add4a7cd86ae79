"""Statements that go to the server together: nobody waits for the answer of one before sending the next.

libpq's pipeline mode, by psycopg (https://www.psycopg.org/psycopg3/docs/advanced/pipeline.html).
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from django.db import connection, transaction


@contextmanager
def pipelined() -> Iterator[None]:
    """Send the statements of the block at once; their answers are there before it ends.

    Where one is refused, those after it are not run, and the block raises its error as Django's. Reading rows
    inside waits for them and for all before them. Only within a transaction: all are of one piece.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("statements are sent together within a transaction")
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield


@contextmanager
def pipelined_transaction() -> Iterator[None]:
    """A transaction whose statements are sent together, and COMMIT with them.

    An error may come from whatever waits next, the end of the block included: catch none inside.
    """
    # Within somebody else's transaction nothing is committed here.
    is_outermost = not connection.in_atomic_block
    with ExitStack() as until_committed, transaction.atomic():
        if is_outermost:
            until_committed.enter_context(pipelined())
        yield
