"""Statements that go to the server together: nobody waits for the answer of one before sending the next.

libpq's pipeline mode, by psycopg (https://www.psycopg.org/psycopg3/docs/advanced/pipeline.html).
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from django.db import connection, transaction


@contextmanager
def pipelined() -> Iterator[None]:
    """What is executed inside is sent at once, and answered before the block ends.

    Where one is refused, those after it are not run, and the block raises its error as Django's. Reading rows
    inside waits for them and for all before them. Only within a transaction: all are of one piece.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("statements are sent together within a transaction")
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield


@contextmanager
def transaction_with_pipelined_end() -> Iterator[Callable[[], None]]:
    """A transaction. Once what it yields is called, its statements are sent together and COMMIT with them.

    From then on an error may come from whatever waits next, the end of the block included: catch none inside.
    """
    with ExitStack() as until_committed:

        def together_from_here() -> None:
            # Within somebody else's transaction nothing is committed here.
            if is_outermost:
                until_committed.enter_context(pipelined())

        is_outermost = not connection.in_atomic_block
        with transaction.atomic():
            yield together_from_here
