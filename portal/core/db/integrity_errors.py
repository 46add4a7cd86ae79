"""Convert integrity errors of the database into DomainErrors, by the name of the violated constraint."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from django.db import IntegrityError, transaction

from portal.core.errors import DomainError


@contextmanager
def integrity_errors_as(refusals: Mapping[str, Callable[[], DomainError]]) -> Iterator[None]:
    """Run the block in a savepoint, and raise the error in ``refusals`` for a violated constraint.

    ``refusals``: for each name of a constraint, a function that creates the error. It is called after the
    savepoint is rolled back, so that it can query the database. Other integrity errors are raised unchanged.
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
