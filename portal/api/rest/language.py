"""The language of API responses: documents are in English, problem documents in the language of the reader.

Programs compare and store documents, and a document's ETag depends on its bytes. All readers therefore get
the same text. Problem documents are for people: their sentences are in the language that ``Accept-Language``
prefers, or in the language of the session's user.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils import translation

_readers_language: ContextVar[str] = ContextVar("readers_language", default=settings.LANGUAGE_CODE)


class ApiLanguageMiddleware:
    """Switches views of the REST framework to English.

    This must happen after other middlewares have chosen a language.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: object, *arguments: object) -> None:
        if hasattr(view, "cls"):  # true for views of Django REST framework
            _readers_language.set(translation.get_language() or settings.LANGUAGE_CODE)
            translation.activate(settings.LANGUAGE_CODE)


def in_readers_language() -> AbstractContextManager[None]:
    """Return a context in which texts are translated for the sender of the request."""
    return translation.override(_readers_language.get())
