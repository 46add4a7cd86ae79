"""The language of a user's pages and mails, and of the API's responses.

API documents are in English, because programs compare and store them, and a document's ETag depends on its
bytes. Problem documents are for people: their sentences are in the language that ``Accept-Language`` prefers,
or in the language of the session's user.
"""

from contextlib import AbstractContextManager
from contextvars import ContextVar

from django.conf import settings
from django.http import HttpRequest
from django.utils import translation
from django.utils.deprecation import MiddlewareMixin

from portal.accounts.models import User
from portal.core.http import View

_readers_language: ContextVar[str] = ContextVar("readers_language", default=settings.LANGUAGE_CODE)


def language_of(*people: User | None) -> str:
    """Return the language of the first person who has a known language; otherwise LANGUAGE_CODE."""
    known = dict(settings.LANGUAGES)
    return next((each.language for each in people if each and each.language in known), settings.LANGUAGE_CODE)


def writing_to(*people: User | None) -> AbstractContextManager[None]:
    """Return a context manager that activates ``language_of(*people)`` for texts in its block."""
    return translation.override(language_of(*people))


def in_readers_language() -> AbstractContextManager[None]:
    """Return a context in which texts of an API response are translated for the sender of the request."""
    return translation.override(_readers_language.get())


def language_choose(*, user: User, language: str) -> None:
    """Store the language of ``user``. It must be one of LANGUAGES."""
    User.objects.filter(pk=user.pk).update(language=language)
    user.language = language


def language_keep_first(*, user: User, language: str | None) -> None:
    """Store ``language`` for ``user`` if it is one of LANGUAGES and the user has no language yet."""
    if language in dict(settings.LANGUAGES) and not user.language:
        language_choose(user=user, language=language)


class LanguageMiddleware(MiddlewareMixin):
    """Activate the language of the signed-in user, after LocaleMiddleware has activated the browser's.

    Views of the REST framework then run in English. The middleware reads the user just before the view. It
    causes no additional query, because the view needs the user anyway.
    """

    def process_view(self, request: HttpRequest, view: View, *arguments: object) -> None:
        if not getattr(view, "has_no_text", False):
            own_language_use(request)
        if hasattr(view, "cls"):  # true for views of Django REST framework
            _readers_language.set(translation.get_language() or settings.LANGUAGE_CODE)
            translation.activate(settings.LANGUAGE_CODE)


def without_text(view: View) -> View:
    """Mark a view whose response contains no text. The middleware then does not read the user."""
    view.has_no_text = True  # type: ignore[attr-defined]
    return view


def own_language_use(request: HttpRequest) -> None:
    """Activate the language of the signed-in user, if the user has one."""
    user = request.user
    if isinstance(user, User) and user.language:
        translation.activate(language_of(user))
