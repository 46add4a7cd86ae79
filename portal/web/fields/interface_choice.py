"""A field for an interface. The user chooses it from the router's reported interfaces, or types its name.

The list below the field appears when the user has entered the router. With htmx it appears immediately, and
without JavaScript after the user presses a button.
"""

from typing import Any, Self

from django import forms
from django.http import QueryDict
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from portal.inventory.interfaces import reported_interfaces
from portal.inventory.models import Router
from portal.web.fields.autocomplete import row_named
from portal.web.fields.base import VersionedForm

# The names of the form's buttons. The first button shows the lists; all other buttons choose an interface for
# a field.
_SHOW, _PICK = "show", "pick_"


class InterfaceInput(forms.TextInput):
    """A text input with a list of the interfaces of ``router`` below it."""

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
    return render_to_string("noc/_reported_interfaces.html", context)
