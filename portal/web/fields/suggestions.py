"""Fields for the name of a row or of an interface, with suggestions while the user types."""

from collections.abc import Callable
from typing import Any, Self

from django import forms
from django.db.models import Model, QuerySet
from django.http import QueryDict
from django.template.loader import render_to_string
from django.urls import reverse_lazy
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import Customer
from portal.core.quantities import row_id
from portal.inventory.interfaces import reported_interfaces
from portal.inventory.kinds import found
from portal.inventory.models import Router, Site
from portal.web.fields.base import LookupField, VersionedForm

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
    """A text field with a datalist, which htmx updates while the user types.

    It replaces a select, which is unusable with more than some hundred rows. Without JavaScript there are
    fewer suggestions, and the user types the name or the id.
    """

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


# The names of the form's buttons. The first button shows the lists; all other buttons choose an interface for
# a field.
_SHOW, _PICK = "show", "pick_"


class InterfaceInput(forms.TextInput):
    """A text input, and below it a list of the interfaces that ``router`` reports.

    The user chooses an interface from the list, or types its name. The list appears when the user has entered
    the router. With htmx it appears immediately, and without JavaScript after the user presses a button.
    """

    def __init__(self, router_field: str) -> None:
        super().__init__(attrs={"autocomplete": "off", "spellcheck": "false"})
        self.router_field = router_field
        self.router: Router | None = None

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        field = super().render(name, value, {**(attrs or {}), "list": f"id_{name}-names"}, renderer)
        return field + reported_list(name, self.router_field, self.router)


class InterfaceField(forms.CharField):
    """A field for an interface of the router in the field ``router_field``.

    When the user chooses an interface, the form also fills other fields if they are empty. ``fills`` maps
    such a field to an attribute of the observed interface.
    """

    def __init__(self, *, router_field: str, fills: dict[str, str], **kwargs: Any) -> None:
        super().__init__(max_length=63, widget=InterfaceInput(router_field), **kwargs)
        self.router_field, self.fills = router_field, fills


class PicksInterfaces(VersionedForm):
    """A form with fields for interfaces."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self._choices().values():
            field.widget.router = router_named(self[field.router_field].value())

    @classmethod
    def half_written(cls, sent: QueryDict) -> Self | None:
        """Return the form with the values entered so far, and the chosen interface, without validation.

        Return None if the user pressed the button to save.
        """
        picks = {name.removeprefix(_PICK): str(sent[name]) for name in sent if name.startswith(_PICK)}
        if not picks and _SHOW not in sent:
            return None
        written: dict[str, Any] = {
            name: name in sent if isinstance(field, forms.BooleanField) else sent.get(name, "")
            for name, field in cls().fields.items()
        }
        form = cls(initial=written | picks)
        for name, field in form._choices().items():
            if name in picks and field.widget.router is not None:
                form._fill(field, picks[name])
        return form

    def _choices(self) -> dict[str, InterfaceField]:
        return {name: field for name, field in self.fields.items() if isinstance(field, InterfaceField)}

    def _fill(self, field: InterfaceField, picked: str) -> None:
        seen = field.widget.router.observed_interfaces.filter(name=picked).first()
        for empty, attribute in field.fills.items():
            if seen is not None and not self.initial.get(empty):
                self.initial[empty] = getattr(seen, attribute)


def router_named(written: Any) -> Router | None:
    """Return the router with the entered name or id; None if there is none."""
    text = str(written or "").replace("\0", "").strip()
    router: Router | None = row_named("routers", text) if text else None
    return router


def reported_list(field: str, router_field: str, router: Router | None) -> SafeString:
    """Return the HTML list of the router's interfaces. It is shown below the field ``field``.

    htmx requests the list again when the user enters another router.
    """
    context = {
        "field": field,
        "router_field": router_field,
        "router": router,
        "reported": [] if router is None else reported_interfaces(router),
    }
    return render_to_string("noc/inventory/_reported_interfaces.html", context)
