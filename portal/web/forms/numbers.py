"""Numbers as their readers write them: ``2,5`` in German. What could be read in two ways is asked again."""

import re
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.formats import get_format
from django.utils.translation import gettext as _

from portal.core.units import localized

# 1.000 may be a thousand or one; 0.125 and 2.5 are nothing but decimals.
_THOUSANDS_OR_DECIMALS = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+")
_WHOLE = re.compile(r"[+-]?\d+")


class NumberField(forms.DecimalField):
    """With the decimal sign of the reader's language, or a point that cannot be taken for anything else."""

    def to_python(self, value: Any) -> Decimal | None:  # type: ignore[override]
        return super().to_python(_plain(value) if isinstance(value, str) else value)

    def prepare_value(self, value: Any) -> Any:
        return localized(f"{value:f}") if isinstance(value, Decimal) else value


class WholeNumberField(forms.IntegerField):
    """Digits alone: Django's own field takes ``9.000`` for 9."""

    def to_python(self, value: Any) -> int | None:
        if isinstance(value, str) and value.strip() and not _WHOLE.fullmatch(value.strip()):
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        return super().to_python(value)


def _plain(written: str) -> str:
    """The number as Python writes it. Raises ValidationError where a point may stand for two things."""
    sign, number = get_format("DECIMAL_SEPARATOR"), written.strip()
    if sign == ".":
        return number
    if _THOUSANDS_OR_DECIMALS.fullmatch(number) or ("." in number and sign in number):
        raise ValidationError(
            _("%(written)s can be read in two ways. Enter %(whole)s, or a comma before the decimals."),
            code="ambiguous",
            params={"written": number, "whole": number.replace(".", "")},
        )
    return number.replace(sign, ".")
