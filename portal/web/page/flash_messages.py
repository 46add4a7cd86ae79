"""Messages at the top of a page about the result of a button."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib import messages

from portal.core.errors import DomainError
from portal.web.page.page_guard import SignedInRequest


@contextmanager
def result_message(request: SignedInRequest, *, done: str = "") -> Iterator[None]:
    """Run the block. If it succeeds, show the message ``done``, unless it is "".

    If it raises a DomainError, show the sentence of the error and do not raise it further.
    """
    try:
        yield
    except DomainError as error:
        messages.error(request, error.sentence)
    else:
        if done:
            messages.success(request, done)
