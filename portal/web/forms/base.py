"""The common part of all forms: Tabler's classes on Django's widgets, and texts that read as written."""

from functools import partial
from typing import Any

from django import forms

from portal.core.plain_text import plain_line, plain_lines


class LookupField(forms.CharField):
    """A text by which rows are found. Nothing of it is kept, and so it takes whatever may stand in a name."""


class TablerForm(forms.Form):
    """A form whose widgets look like the rest of the portal, and whose texts are plain.

    A text that the form itself showed is accepted unchanged: it is stored already, and must not keep anybody
    from changing the other fields. The first field with an error has the focus when the form is shown again.
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

    def _plain(self, name: str, text: str) -> None:
        field, bound = self.fields[name], self[name]
        if field.has_changed(bound.initial, bound.data):
            plain = plain_lines if isinstance(field.widget, forms.Textarea) else plain_line
            plain(text)


def _is_kept_text(field: forms.Field) -> bool:
    """Whether somebody may be shown what is written there; nobody is shown a password."""
    never_shown = isinstance(field, LookupField) or isinstance(field.widget, forms.PasswordInput)
    return isinstance(field, forms.CharField) and not never_shown


def class_of(widget: forms.Widget) -> str:
    """Tabler's class for a widget."""
    if isinstance(widget, forms.CheckboxInput):
        return "form-check-input"
    return "form-select" if isinstance(widget, forms.Select) else "form-control"
