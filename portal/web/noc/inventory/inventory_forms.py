"""The NOC's inventory forms. Their fields are derived from ``portal.inventory.kinds``.

Fields have the names of the operations' parameters, so that a refusal can be added to its field.
"""

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.core.validators import RegexValidator, URLValidator
from django.utils.translation import gettext_lazy as _

from portal.core.quantities import WholeNumberField, read_rate
from portal.inventory.kinds import KIND_OF, Field, InventoryKind, Type
from portal.web.fields.base import VersionedForm
from portal.web.fields.numbers import NumberField, SizeField, decimal_sign, shown
from portal.web.fields.suggestions import AutocompleteField, InterfaceField, PicksInterfaces

_LARGEST = 2**53 - 1


class _LargerUnitField(NumberField):
    """A number that the form shows in a larger unit than the operation uses.

    ``factor``: the number of the operation's units in one unit of the form. ``places``: the decimal places.
    ``most``: the largest number in the form.
    """

    factor: int
    places: int
    most: int

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            min_value=Decimal(0), max_value=Decimal(self.most), decimal_places=self.places, **kwargs
        )
        self.widget = forms.TextInput(attrs={"inputmode": "decimal"})

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, int):
            return value
        number = f"{Decimal(value) / self.factor:.{self.places}f}"
        return shown(number.rstrip("0").rstrip("."))

    def clean(self, value: Any) -> Any:
        found = super().clean(value)
        return None if found is None else round(found * self.factor)


class MbitField(_LargerUnitField):
    """A rate: Mbit/s in the form, whole bit/s in the operation."""

    factor, places, most = 10**6, 6, 10**9

    def read(self, text: str) -> Decimal:
        """Return the rate in Mbit/s. A text without a unit is in Mbit/s."""
        return read_rate(text, sign=decimal_sign()).of(self.factor) / self.factor


class DaysField(_LargerUnitField):
    """A duration: days in the form, whole seconds in the operation."""

    # The last of 5 decimal places is less than a second.
    factor, places, most = 86_400, 5, 10**6


class DegreesField(NumberField):
    """Degrees with six decimal places, a tenth of a metre. The operation checks the range of the value."""

    most_meant = Decimal(360)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_digits=9, decimal_places=6, **kwargs)
        self.widget = forms.TextInput(attrs={"inputmode": "decimal"})

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, Decimal) or not value:
            return value
        return f"{value:f}".rstrip("0").rstrip(".").replace(".", decimal_sign())


_WHOLE: dict[str, Any] = {
    "min_value": 0,
    "max_value": _LARGEST,
    "widget": forms.TextInput(attrs={"inputmode": "numeric"}),
}
# The type stubs do not know that the field passes this argument to CharField.
_NULL: dict[str, Any] = {"empty_value": None}
_FIELDS: dict[Type, Callable[..., forms.Field]] = {
    Type.TEXT: forms.CharField,
    Type.HTTPS_URL: partial(forms.CharField, validators=[URLValidator(schemes=["https"])]),
    Type.ROUTER_NAME: partial(
        forms.CharField,
        validators=[RegexValidator(r"^[a-z0-9-]{1,63}\Z", _("Enter a–z, 0–9 and hyphens, 63 at most."))],
    ),
    Type.CHOICE: forms.ChoiceField,
    Type.BOOLEAN: forms.BooleanField,
    Type.NUMBER: partial(WholeNumberField, **_WHOLE),
    Type.SIZE: partial(SizeField, **_WHOLE),
    Type.RATE: MbitField,
    Type.DURATION: DaysField,
    Type.DEGREES: DegreesField,
    Type.IPV4: partial(forms.GenericIPAddressField, protocol="IPv4", **_NULL),
    Type.IPV6: partial(forms.GenericIPAddressField, protocol="IPv6", **_NULL),
    Type.INTERFACE: InterfaceField,
    Type.ROW: AutocompleteField,
}
# The fields that a chosen interface fills, each with the attribute of the observed interface.
_FILLS = {
    "interface": {"speed_bps": "speed_bps"},
    "a_interface": {"a_ip_mtu": "ip_mtu"},
    "z_interface": {"z_ip_mtu": "ip_mtu"},
}


def _field(of: Field) -> forms.Field:
    """Return the form's field for a declared field."""
    more: dict[str, Any] = {"label": of.label}
    if of.help:
        more["help_text"] = of.help
    if of.default not in (None, ""):
        more["initial"] = of.default
    if of.column.blank or of.may_be_empty or of.type is Type.BOOLEAN:
        more["required"] = False
    match of.type:
        case Type.TEXT | Type.HTTPS_URL:
            more["max_length"] = of.column.max_length
        case Type.CHOICE:
            more["choices"] = [(value, value.upper()) for value, _label in of.column.choices]
        case Type.INTERFACE:
            more |= {"router_field": of.name.replace("interface", "router"), "fills": _FILLS[of.name]}
        case Type.ROW:
            more["of"] = KIND_OF[of.column.related_model].slug
    return _FIELDS[of.type](**more)


class _Form(PicksInterfaces):
    # The values that empty fields mean.
    defaults: ClassVar[dict[str, Any]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.initial.get("oversubscription_percent") is not None:
            # Leave a port's rate empty, because it is computed from the percentage.
            self.initial["bookable_bps"] = None

    def clean(self) -> dict[str, Any]:
        found: dict[str, Any] = super().clean() or {}
        return {name: self.defaults.get(name) if value is None else value for name, value in found.items()}


def form_of(kind: InventoryKind, *, changes: bool = False) -> type[VersionedForm]:
    """Return the form to create a row of the kind, or to change it."""
    declared = kind.written(changes=changes)
    members: dict[str, Any] = {each.name: _field(each) for each in declared}
    members["defaults"] = {each.name: each.default for each in declared if each.may_be_empty}
    if acceptance := kind.acceptance_of(changes=changes):
        texts: dict[str, Any] = dict(zip(("label", "help_text"), acceptance, strict=True))
        members["accept_affected"] = forms.BooleanField(required=False, initial=False, **texts)
    return type("InventoryForm", (_Form,), members)


class VniRangeForm(VersionedForm):
    first = WholeNumberField(label=_("First VNI"), **_WHOLE)
    last = WholeNumberField(label=_("Last VNI"), **_WHOLE)
    reason = forms.CharField(label=_("Reason"), max_length=100)
