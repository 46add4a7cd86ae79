"""Sentences that are stored or sent to programs. Their readers may use another language than the author."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.utils import translation

from portal.core.reader_zone import in_utc


@contextmanager
def in_english() -> Iterator[None]:
    """Use English and UTC for texts that are composed in the block.

    Pages do not show these sentences: they compose the sentence again from stored facts.
    """
    with translation.override(settings.LANGUAGE_CODE), in_utc():
        yield
