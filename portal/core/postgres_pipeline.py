"""Send several statements to the server without waiting for the result of each.

This uses libpq's pipeline mode, by psycopg (https://www.psycopg.org/psycopg3/docs/advanced/pipeline.html).
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from django.db import connection, transaction


@contextmanager
def pipelined() -> Iterator[None]:
    """Send the statements of the block at once; their results arrive before the block ends.

    If the server refuses a statement, it skips those that follow, and the block raises Django's error.
    Reading rows inside the block waits for that statement and all before it. Use it only within a
    transaction.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("statements are sent together within a transaction")
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield


@contextmanager
def pipelined_transaction() -> Iterator[None]:
    """Run a transaction and send its statements together with COMMIT.

    The next call that waits may raise an error of an earlier statement, and so may the end of the block. Do
    not catch errors inside.
    """
    # Inside the transaction of a caller, nothing is committed here.
    is_outermost = not connection.in_atomic_block
    with ExitStack() as until_committed, transaction.atomic():
        if is_outermost:
            until_committed.enter_context(pipelined())
        yield
