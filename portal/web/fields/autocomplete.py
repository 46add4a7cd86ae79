"""A text field for the name or id of a row, with suggestions while the user types.

It replaces a select, which is unusable with more than some hundred rows. Without JavaScript there are fewer
suggestions, and the user types the name or the id.
"""

from collections.abc import Callable
from typing import Any

from django import forms
from django.db.models import Model, QuerySet
from django.urls import reverse_lazy
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import Customer
from portal.core.quantities import row_id
from portal.inventory.kinds import found
from portal.inventory.models import Router, Site
from portal.web.fields.base import LookupField

SHOWN = 20

# The kinds of rows to choose from. The key of a kind is the last part of its address /noc/suggest/<of>/.
# Names are unique within a kind.
ROWS: dict[str, Callable[[], QuerySet[Any]]] = {
    "sites": Site.objects.all,
    "customers": lambda: Customer.objects.filter(retired_at__isnull=True),
    "routers": lambda: Router.objects.filter(retired_at__isnull=True),
}


def suggestions(of: str, text: str = "") -> list[str]:
    """Return the first SHOWN names of the rows that portal.inventory.kinds finds for ``text``.

    If ``text`` is "", return the first names of all rows.
    """
    rows = ROWS[of]()
    narrowed = found(rows, text) if text else rows
    return list(narrowed.order_by("name").values_list("name", flat=True)[:SHOWN])


def row_named(of: str, text: str) -> Any:
    """Return the row with this name. If there is none, return the row with this id, or None."""
    rows = ROWS[of]()
    row = rows.filter(name=text).first()
    number = row_id(text)
    return rows.filter(pk=number).first() if row is None and number is not None else row


def options(names: list[str]) -> SafeString:
    """Return the HTML options of a datalist with these names."""
    return format_html_join("", '<option value="{}"></option>', ((name,) for name in names))


class AutocompleteInput(forms.TextInput):
    """A text field with a datalist, which htmx updates while the user types."""

    def __init__(self, of: str) -> None:
        super().__init__(attrs={"autocomplete": "off", "maxlength": "100"})
        self.of = of

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        datalist = f"{(attrs or {}).get('id', name)}-names"
        attributes = {
            "list": datalist,
            "hx-get": f"{reverse_lazy('web:noc-suggest', args=[self.of])}?of={name}",
            "hx-trigger": "input changed delay:250ms",
            "hx-target": f"#{datalist}",
            "hx-swap": "innerHTML",
        }
        field = super().render(name, value, {**(attrs or {}), **attributes}, renderer)
        return format_html(
            '{}<datalist id="{}">{}</datalist>', field, datalist, options(suggestions(self.of))
        )


class AutocompleteField(LookupField):
    """A field for a row. Its cleaned value is the row with the entered name or id; None if it is empty."""

    default_error_messages = {"unknown": _("Nothing has this name. Enter a name from the list, or an id.")}

    def __init__(self, *, of: str, **kwargs: Any) -> None:
        kwargs.setdefault("help_text", _("Its name or id"))
        super().__init__(widget=AutocompleteInput(of), max_length=100, **kwargs)
        self.of = of

    def prepare_value(self, value: Any) -> Any:
        return str(value) if isinstance(value, Model) else value

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        row = row_named(self.of, text)
        if row is None:
            raise forms.ValidationError(self.error_messages["unknown"], code="unknown")
        return row
