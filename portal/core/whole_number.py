"""Reading of whole numbers from input."""

import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError


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


class WholeNumberField(forms.IntegerField):
    """A form field for a whole number of digits. Django's own field also accepts decimals: ``9.000`` is 9."""

    pattern = re.compile(r"\s*[+-]?\d+\s*")

    def to_python(self, value: Any) -> int | None:
        if isinstance(value, str) and value and not self.pattern.fullmatch(value):
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        return super().to_python(value)
