"""Turn integrity errors of the database into typed errors: the constraint decides, the caller
supplies facts.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from django.db import IntegrityError, transaction

from portal.core.errors import DomainError


@contextmanager
def integrity_errors_as(refusals: Mapping[str, Callable[[], DomainError]]) -> Iterator[None]:
    """Run a write in a savepoint; a violated constraint of ``refusals`` (by name) raises its error.

    The error is created after the savepoint is rolled back, so that it may query rows for its facts.
    """
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        name = getattr(getattr(error.__cause__, "diag", None), "constraint_name", None)
        refusal = refusals.get(name or "")
        if refusal is None:
            raise
        raise refusal() from error
