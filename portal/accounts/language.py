"""The language of a user, in which pages and mails are written."""

from contextlib import AbstractContextManager

from django.conf import settings
from django.utils import translation

from portal.accounts.models import User


def language_of(*people: User | None) -> str:
    """Return the language of the first person with a known language; English if there is none."""
    known = dict(settings.LANGUAGES)
    return next((each.language for each in people if each and each.language in known), settings.LANGUAGE_CODE)


def writing_to(*people: User | None) -> AbstractContextManager[None]:
    """Write texts of the block in ``language_of(*people)``."""
    return translation.override(language_of(*people))


def language_choose(*, user: User, language: str) -> None:
    """Set the language of ``user``, one of LANGUAGES."""
    User.objects.filter(pk=user.pk).update(language=language)
    user.language = language


def language_keep_first(*, user: User, language: str | None) -> None:
    """Store the language of the first visit, unless ``user`` already has a language."""
    if language in dict(settings.LANGUAGES) and not user.language:
        language_choose(user=user, language=language)
