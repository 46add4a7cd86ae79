"""Send several statements to the server without waiting for the result of each.

This uses libpq's pipeline mode through psycopg
(https://www.psycopg.org/psycopg3/docs/advanced/pipeline.html).
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from django.db import connection, transaction


@contextmanager
def pipelined() -> Iterator[None]:
    """Send the statements of the block without waiting for each result. The end of the block waits for all
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
