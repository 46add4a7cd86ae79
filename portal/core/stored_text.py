"""Sentences that are kept in rows or sent to programs: whoever caused them need not be who reads them."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.utils import translation

from portal.core.reader_zone import in_utc


@contextmanager
def in_english() -> Iterator[None]:
    """Inside, texts are in English and times in UTC. Where facts are kept, pages write the sentence again."""
    with translation.override(settings.LANGUAGE_CODE), in_utc():
        yield
