"""Tabler's classes on Django's widgets, so that templates need not know which widget a field has."""

from typing import Any

from django import forms


class TablerForm(forms.Form):
    """A form whose widgets look like the rest of the portal."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs.setdefault("class", class_of(field.widget))


def class_of(widget: forms.Widget) -> str:
    """Tabler's class for a widget."""
    if isinstance(widget, forms.CheckboxInput):
        return "form-check-input"
    return "form-select" if isinstance(widget, forms.Select) else "form-control"
