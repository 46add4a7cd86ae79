"""The language that somebody reads: pages and mails are written in it."""

from contextlib import AbstractContextManager

from django.conf import settings
from django.utils import translation

from portal.accounts.models import User


def language_of(*people: User | None) -> str:
    """That of the first of them whose language is known; English where none is."""
    known = dict(settings.LANGUAGES)
    return next((each.language for each in people if each and each.language in known), settings.LANGUAGE_CODE)


def writing_to(*people: User | None) -> AbstractContextManager[None]:
    """Inside, texts are in ``language_of(*people)``."""
    return translation.override(language_of(*people))


def language_choose(*, user: User, language: str) -> None:
    """From now on write to ``user`` in ``language``, one of LANGUAGES."""
    User.objects.filter(pk=user.pk).update(language=language)
    user.language = language


def language_keep_first(*, user: User, language: str | None) -> None:
    """Write to ``user`` in the language of the first visit, unless one is known already."""
    if language in dict(settings.LANGUAGES) and not user.language:
        language_choose(user=user, language=language)
