"""The base of all forms: it adds Tabler's CSS classes to widgets, and accepts only plain text."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from django import forms, template
from django.forms import BoundField

from portal.core.errors import DomainError
from portal.core.plain_text import plain_line, plain_lines


class LookupField(forms.CharField):
    """A field for a text to search for. The text is never stored, so all characters are valid."""


class TablerForm(forms.Form):
    """A form with the portal's design that accepts only plain text.

    A stored text that the user has not changed is accepted even if it is not plain. Otherwise the user could
    not change other fields. When the form is shown again, the first field with an error has the focus.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            field.widget.attrs.setdefault("class", class_of(field.widget))
            if _is_kept_text(field):
                field.validators.append(partial(self._plain, name))

    def full_clean(self) -> None:
        super().full_clean()
        first = next((name for name in self.fields if name in self.errors), None)
        if first is not None:
            self.fields[first].widget.attrs["autofocus"] = True

    def refuse(self, error: DomainError) -> None:
        """Add an error of an operation to the field that it names, or to the form if it has no such field."""
        self.add_error(error.field if error.field in self.fields else None, error.sentence)

    def _plain(self, name: str, text: str) -> None:
        field, bound = self.fields[name], self[name]
        if field.has_changed(bound.initial, bound.data):
            plain = plain_lines if isinstance(field.widget, forms.Textarea) else plain_line
            plain(text)


def _is_kept_text(field: forms.Field) -> bool:
    """Return whether the field's text is stored and shown, so that it must be plain text.

    Search texts are not stored, and passwords are not shown.
    """
    never_shown = isinstance(field, LookupField) or isinstance(field.widget, forms.PasswordInput)
    return isinstance(field, forms.CharField) and not never_shown


def class_of(widget: forms.Widget) -> str:
    """Return Tabler's CSS class for a widget."""
    if isinstance(widget, forms.CheckboxInput):
        return "form-check-input"
    return "form-select" if isinstance(widget, forms.Select) else "form-control"


register = template.Library()


@register.filter
def styled(field: BoundField) -> BoundField:
    """Return a field of a package's form with the portal's CSS classes.

    The placeholder, which repeats the label, is removed.
    """
    field.field.widget.attrs.setdefault("class", class_of(field.field.widget))
    field.field.widget.attrs.pop("placeholder", None)
    return field


@register.filter
def focused(field: BoundField) -> BoundField:
    """Return ``field`` with the attribute ``autofocus``, so that it has the focus when the page opens."""
    field.field.widget.attrs["autofocus"] = True
    return field


@register.filter
def of(values: Mapping[Any, Any], key: Any) -> Any:
    """Return the value of a key; None if the key does not exist. The key may be a variable:
    ``{{ names|of:row.pk }}``.
    """
    return values.get(key)
