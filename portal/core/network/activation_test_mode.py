"""The values of the setting LONGLINE_LINE_TEST."""

from enum import StrEnum
from typing import Self

from django.core.exceptions import ImproperlyConfigured


class ActivationTestMode(StrEnum):
    """Whether a line must pass an activation test before the portal hands it over.

    ``required``: the line must pass. ``advisory``: the line is tested, but handed over even if the test
    fails. ``off``: no test.
    """

    REQUIRED = "required"
    ADVISORY = "advisory"
    OFF = "off"

    @classmethod
    def read(cls, written: str) -> Self:
        """Return the mode of this name. Raises ImproperlyConfigured."""
        try:
            return cls(written)
        except ValueError as error:
            raise ImproperlyConfigured(
                f"LONGLINE_LINE_TEST is {written!r}: write one of {', '.join(cls)}"
            ) from error
