"""The API writes English, whoever asks: its documents are compared, stored and told apart by their ETags.

Problem documents alone are for a person in the end: their sentences are in the language that
``Accept-Language`` prefers, or in that of the person whose session it is.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils import translation

_readers: ContextVar[str] = ContextVar("readers_language", default=settings.LANGUAGE_CODE)


class ApiLanguageMiddleware:
    """Behind those that found out what the reader reads."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: object, *arguments: object) -> None:
        if hasattr(view, "cls"):  # a view of REST framework
            _readers.set(translation.get_language() or settings.LANGUAGE_CODE)
            translation.activate(settings.LANGUAGE_CODE)


def in_readers_language() -> AbstractContextManager[None]:
    """Inside, what is wrong with a request is said in the language of its reader."""
    return translation.override(_readers.get())
