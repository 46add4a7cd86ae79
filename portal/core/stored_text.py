"""Sentences that are kept in rows or sent to programs: whoever caused them need not be who reads them."""

from contextlib import AbstractContextManager

from django.conf import settings
from django.utils import translation


def in_english() -> AbstractContextManager[None]:
    """Inside, texts are in English. Where facts are kept as well, pages write the sentence anew from them."""
    return translation.override(settings.LANGUAGE_CODE)
