"""The language of a user's pages and mails."""

from contextlib import AbstractContextManager

from django.conf import settings
from django.utils import translation

from portal.accounts.models import User


def language_of(*people: User | None) -> str:
    """Return the language of the first person who has a known language; otherwise LANGUAGE_CODE."""
    known = dict(settings.LANGUAGES)
    return next((each.language for each in people if each and each.language in known), settings.LANGUAGE_CODE)


def writing_to(*people: User | None) -> AbstractContextManager[None]:
    """Return a context manager that activates ``language_of(*people)`` for texts in its block."""
    return translation.override(language_of(*people))


def language_choose(*, user: User, language: str) -> None:
    """Store the language of ``user``. It must be one of LANGUAGES."""
    User.objects.filter(pk=user.pk).update(language=language)
    user.language = language


def language_keep_first(*, user: User, language: str | None) -> None:
    """Store ``language`` for ``user`` if it is one of LANGUAGES and the user has no language yet."""
    if language in dict(settings.LANGUAGES) and not user.language:
        language_choose(user=user, language=language)
