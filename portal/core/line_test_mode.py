"""The values of the setting LONGLINE_LINE_TEST."""

from enum import StrEnum
from typing import Self

from django.core.exceptions import ImproperlyConfigured


class LineTestMode(StrEnum):
    """Whether a line has to pass a test with frames before it is handed over.

    ``advisory``: it is tested, and handed over whatever was found.
    """

    REQUIRED = "required"
    ADVISORY = "advisory"
    OFF = "off"

    @classmethod
    def read(cls, written: str) -> Self:
        """Raises ImproperlyConfigured."""
        try:
            return cls(written)
        except ValueError as error:
            raise ImproperlyConfigured(
                f"LONGLINE_LINE_TEST is {written!r}: write one of {', '.join(cls)}"
            ) from error
