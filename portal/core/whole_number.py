"""Reading of whole numbers and ids from input."""

import re
from typing import Any
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError

_LARGEST_ID = 2**63 - 1


def whole_number(text: str, *, most: int) -> int | None:
    """Return the number in a text of ASCII digits; None for any other text and for a number above ``most``.

    Python's ``int`` alone would raise ValueError for more than 4,300 digits, even if all are zeros. The check
    for ASCII is necessary because ``isdigit`` accepts digits such as ², which ``int`` refuses.
    """
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0") or "0"
    if len(digits) > len(str(most)):
        return None
    number = int(digits)
    return number if number <= most else None


def row_id(text: Any) -> int | None:
    """Return the id of a row in a text of a request; None if the text is not an id."""
    return whole_number(str(text or ""), most=_LARGEST_ID)


def uuid_of(text: str) -> UUID | None:
    """Return the UUID in a text; None if the text is not a UUID."""
    try:
        return UUID(text)
    except ValueError:
        return None


class WholeNumberField(forms.IntegerField):
    """A form field for a whole number of digits. Django's own field also accepts decimals: ``9.000`` is 9."""

    pattern = re.compile(r"\s*[+-]?\d+\s*")

    def to_python(self, value: Any) -> int | None:
        if isinstance(value, str) and value and not self.pattern.fullmatch(value):
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        return super().to_python(value)
