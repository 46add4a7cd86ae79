"""What all forms have in common: Tabler's classes on Django's widgets, and texts that read as written."""

from typing import Any

from django import forms

from portal.core.plain_text import plain_line, plain_lines


class TablerForm(forms.Form):
    """A form whose widgets look like the rest of the portal, and whose texts are plain."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs.setdefault("class", class_of(field.widget))
            # Nobody is shown a password.
            if isinstance(field, forms.CharField) and not isinstance(field.widget, forms.PasswordInput):
                lines = isinstance(field.widget, forms.Textarea)
                field.validators.append(plain_lines if lines else plain_line)


def class_of(widget: forms.Widget) -> str:
    """Tabler's class for a widget."""
    if isinstance(widget, forms.CheckboxInput):
        return "form-check-input"
    return "form-select" if isinstance(widget, forms.Select) else "form-control"
