"""A field for an outer VLAN: a number, the word "any", or nothing."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

ANY = "any"


class OuterVlanField(forms.CharField):
    """A field whose cleaned value is an int, ``"any"`` or None (empty).

    The operation checks whether a number is a valid VLAN.
    """

    default_error_messages = {"invalid": _("Enter a VLAN id from 1 to 4094, or any.")}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, max_length=5, **kwargs)

    def clean(self, value: Any) -> Any:
        text = super().clean(value).lower()
        if text in ("", ANY):
            return text or None
        try:
            return int(text)
        except ValueError:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid") from None
