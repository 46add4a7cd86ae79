"""Buttons that lead back to a page: what came of it stands on top of that page."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib import messages

from portal.core.errors import DomainError
from portal.web.page_guard import SignedInRequest


@contextmanager
def telling(request: SignedInRequest, *, done: str) -> Iterator[None]:
    """Run an operation and tell the reader ``done``, or why it was refused; a refusal ends here."""
    try:
        yield
    except DomainError as error:
        messages.error(request, error.sentence)
    else:
        messages.success(request, done)
