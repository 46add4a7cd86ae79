"""Form fields for numbers with units, and for VLANs."""

from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.formats import get_format
from django.utils.translation import gettext_lazy as _

from portal.core.errors import DomainError
from portal.core.quantities import (
    UNKNOWN,
    NumberUnreadable,
    Quantity,
    QuantityAmbiguous,
    WholeNumberField,
    read_number,
    read_rate,
    whole_number,
    whole_size,
    written_back,
)
from portal.vll.line_spec import ANY, Property


class NumberField(forms.DecimalField):
    """A decimal number, with the decimal sign of the reader's language or an unambiguous point."""

    # The largest valid number. If a text has two possible readings and only one is valid, the field uses the
    # valid reading.
    most_meant: Decimal | None = None

    def to_python(self, value: Any) -> Decimal | None:  # type: ignore[override]
        if not isinstance(value, str) or not value.strip():
            return super().to_python(value)
        try:
            return self.read(value)
        except NumberUnreadable:
            raise ValidationError(self.error_messages["invalid"], code="invalid") from None
        except DomainError as error:
            raise refused(error) from None

    def read(self, text: str) -> Decimal:
        """Return the number in a text that is not empty. Raises DomainError."""
        return read_number(text, sign=decimal_sign(), most=self.most_meant)

    def prepare_value(self, value: Any) -> Any:
        return shown(f"{value:f}") if isinstance(value, Decimal) else value


class RateField(NumberField):
    """A rate, with or without its unit.

    The cleaned value is a ``Quantity``, because the unit may be in another field.
    """

    def clean(self, value: Any) -> Quantity | None:
        text = value.strip() if isinstance(value, str) else ""
        if not text:
            if self.required:
                raise ValidationError(self.error_messages["required"], code="required")
            return None
        try:
            return read_rate(text, sign=decimal_sign())
        except DomainError as error:
            raise refused(error) from None


class SizeField(WholeNumberField):
    """A size in whole bytes, with or without its unit."""

    def to_python(self, value: Any) -> int | None:
        if not isinstance(value, str) or not value.strip() or self.pattern.fullmatch(value):
            return super().to_python(value)
        try:
            # A whole number of bytes has no decimals. So in every language, a comma is not a decimal sign
            # here.
            return whole_size(value, sign="." if decimal_sign() == "." else UNKNOWN)
        except QuantityAmbiguous as error:
            raise refused(error) from None
        except DomainError:
            raise ValidationError(self.error_messages["invalid"], code="invalid") from None


def decimal_sign() -> str:
    """Return the decimal sign of the reader's language."""
    return str(get_format("DECIMAL_SEPARATOR"))


def shown(number: str) -> str:
    """Return a number, given in Python's notation, as the form shows and reads it."""
    return written_back(number, sign=decimal_sign())


def refused(error: DomainError) -> ValidationError:
    """Return the form's error for a text that cannot be read. Its code is ``ambiguous`` or ``invalid``."""
    code = "ambiguous" if isinstance(error, QuantityAmbiguous) else "invalid"
    return ValidationError(error.sentence, code=code)


class OuterVlanField(forms.CharField):
    """A field whose cleaned value is an int, ``"any"`` or None (empty).

    The operation checks whether a number is a valid VLAN.
    """

    default_error_messages = {"invalid": _("Enter a VLAN id from 1 to 4094, or any.")}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=5, **kwargs)

    def clean(self, value: Any) -> Any:
        text = super().clean(value).lower()
        if text in ("", ANY):
            return text or None
        number = whole_number(text, most=99_999)
        if number is None:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        return number


# The field for a number with this unit, and the keyboard of phones for it.
_NUMBERS: dict[str, tuple[type[forms.Field], str]] = {
    "": (WholeNumberField, "numeric"),
    "bytes": (SizeField, "numeric"),
    "bit/s": (RateField, "decimal"),
}


def property_field(each: Property, *, kind: type[forms.Field] | None = None, **more: Any) -> forms.Field:
    """Return the form field for a property of a line or of an end.

    ``kind``: the class of the field, if the declaration of the property does not determine it. ``more``:
    other arguments for the class.
    """
    label = each.label if each.form_label is None else each.form_label
    more = {"label": label, "help_text": each.form_help, "required": each.is_required, **more}
    if each.is_flag:
        return forms.BooleanField(**more)
    refusals = {"required": each.form_missing, "invalid": each.form_unreadable}
    more["error_messages"] = {code: text for code, text in refusals.items() if text}
    more["initial"] = each.form_proposes
    if kind is not None:
        return kind(**more)
    if each.choices:
        return forms.ChoiceField(**more | {"required": True})
    if each.longest:
        return forms.CharField(max_length=each.longest, **more)
    number, keyboard = _NUMBERS[each.unit]
    return number(widget=forms.TextInput(attrs={"inputmode": keyboard}), **more)
