"""An interface that is picked from what its router reports, or written by hand.

The list stands below the field and comes with the router: by htmx as soon as that is named, else by a button.
"""

from typing import Any, Self

from django import forms
from django.http import QueryDict
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from portal.inventory.models import Router
from portal.inventory.reported_interfaces import reported_interfaces
from portal.web.forms.autocomplete import row_named
from portal.web.forms.version_field import VersionedForm

# The buttons of such a form: one asks for the lists, the others take an interface for a field.
_SHOW, _PICK = "show", "pick_"


class InterfaceInput(forms.TextInput):
    """A text field, and below it the interfaces of ``router``."""

    def __init__(self, router_field: str) -> None:
        super().__init__(attrs={"autocomplete": "off", "spellcheck": "false"})
        self.router_field = router_field
        self.router: Router | None = None

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        field = super().render(name, value, {**(attrs or {}), "list": f"id_{name}-names"}, renderer)
        return field + reported_list(name, self.router_field, self.router)


class InterfaceField(forms.CharField):
    """``router_field`` names the router. What is picked fills in other fields that are empty: ``fills`` says
    which, and with what of the interface as it was observed."""

    def __init__(self, *, router_field: str, fills: dict[str, str], **kwargs: Any) -> None:
        super().__init__(max_length=63, widget=InterfaceInput(router_field), **kwargs)
        self.router_field, self.fills = router_field, fills


class PicksInterfaces(VersionedForm):
    """A form with such fields."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self._choices().values():
            field.widget.router = router_named(self[field.router_field].value())

    @classmethod
    def half_written(cls, sent: QueryDict) -> Self | None:
        """What was written so far, not judged, with what was picked; None for a form that is to be saved."""
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
    """The router that a form names so far, None for none."""
    text = str(written or "").replace("\0", "").strip()
    router: Router | None = row_named("routers", text) if text else None
    return router


def reported_list(field: str, router_field: str, router: Router | None) -> SafeString:
    """The list below the field ``field``, by which it may be asked for again when another router is named."""
    context = {
        "field": field,
        "router_field": router_field,
        "router": router,
        "reported": [] if router is None else reported_interfaces(router),
    }
    return render_to_string("noc/_reported_interfaces.html", context)
