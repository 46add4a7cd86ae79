"""Sentences that are stored or sent to programs. Their readers may use another language than their author."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.utils import translation

from portal.core.reader_zone import in_utc


@contextmanager
def in_english() -> Iterator[None]:
    """Write texts of the block in English and times in UTC. Pages write the sentence again from
    stored facts.
    """
    with translation.override(settings.LANGUAGE_CODE), in_utc():
        yield
