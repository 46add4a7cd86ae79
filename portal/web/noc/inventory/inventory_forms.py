"""The NOC's inventory forms.

Fields have the names of the operations' parameters, so that a refusal can be added to its field.
"""

from decimal import Decimal
from typing import Any

from django import forms
from django.core.validators import RegexValidator, URLValidator
from django.utils.translation import gettext_lazy as _

from portal.core.quantities import read_rate
from portal.inventory.models import Port
from portal.web.fields.autocomplete import AutocompleteField
from portal.web.fields.interface_choice import InterfaceField, PicksInterfaces
from portal.web.fields.numbers import NumberField, SizeField, WholeNumberField, decimal_sign, shown
from portal.web.page.versioned_save import VersionedForm

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


def _number(**kwargs: Any) -> WholeNumberField:
    return WholeNumberField(
        min_value=0, max_value=_LARGEST, widget=forms.TextInput(attrs={"inputmode": "numeric"}), **kwargs
    )


def _size(**kwargs: Any) -> SizeField:
    return SizeField(
        min_value=0, max_value=_LARGEST, widget=forms.TextInput(attrs={"inputmode": "numeric"}), **kwargs
    )


def _accept_affected() -> forms.BooleanField:
    return forms.BooleanField(
        label=_("Even if lines in service are affected"),
        required=False,
        initial=False,
        help_text=_("They are listed if there are any, and their customers are notified"),
    )


class DegreesField(NumberField):
    """Degrees with six decimal places, a tenth of a metre. The operation checks the range of the value."""

    most_meant = Decimal(360)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_digits=9, decimal_places=6, required=False, **kwargs)
        self.widget = forms.TextInput(attrs={"inputmode": "decimal"})

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, Decimal) or not value:
            return value
        return f"{value:f}".rstrip("0").rstrip(".").replace(".", decimal_sign())


class SiteForm(VersionedForm):
    name = forms.CharField(label=_("Name"), max_length=100)
    latitude = DegreesField(
        label=_("Latitude (degrees)"),
        help_text=_("North is positive; Zurich is 47.3769. The map shows sites where they are"),
    )
    longitude = DegreesField(
        label=_("Longitude (degrees)"), help_text=_("East is positive; Zurich is 8.5417")
    )


class CustomerForm(VersionedForm):
    name = forms.CharField(label=_("Name"), max_length=100)
    approve_up_to_bps = MbitField(
        label=_("Approved automatically up to (Mbit/s)"),
        required=False,
        help_text=_("Larger orders wait for the NOC; empty: every order is approved automatically"),
    )
    cooling_off_s = DaysField(
        label=_("Cooling-off (days)"),
        required=False,
        help_text=_("How long a removal can be undone; empty: the portal's default"),
    )


class RouterChangeForm(VersionedForm):
    site = AutocompleteField(label=_("Site"), of="sites")
    # The type stubs do not know that the field passes its keyword arguments to CharField.
    loopback4 = forms.GenericIPAddressField(  # type: ignore[call-arg]
        label=_("IPv4 loopback"), protocol="IPv4", required=False, empty_value=None
    )
    loopback6 = forms.GenericIPAddressField(  # type: ignore[call-arg]
        label=_("IPv6 loopback"), protocol="IPv6", required=False, empty_value=None
    )
    underlay_table = _number(
        label=_("Underlay table"),
        required=False,
        initial=0,
        help_text=_("VPP's FIB table with the loopbacks and the links, 0 unless they are in a VRF"),
    )
    agent_url = forms.CharField(
        label=_("Agent's URL"),
        max_length=200,
        required=False,
        validators=[URLValidator(schemes=["https"])],
        help_text=_("https://…; empty for a router that only carries traffic"),
    )
    cpu = forms.CharField(label=_("CPU"), max_length=50, required=False)
    cores = _number(label=_("Cores"), initial=1)
    line_test_pps = _number(
        label=_("Test frames a second"),
        required=False,
        help_text=_("The most that an activation test sends to or from it; empty: the portal's default"),
    )
    accept_affected = forms.BooleanField(
        label=_("Even if fewer cores remain than are booked"),
        required=False,
        initial=False,
        help_text=_("The form says so if this is the case"),
    )

    def clean_underlay_table(self) -> int:
        return self.cleaned_data["underlay_table"] or 0


class RouterCreateForm(RouterChangeForm):
    accept_affected = None  # type: ignore[assignment]
    name = forms.CharField(
        label=_("Name"),
        validators=[RegexValidator(r"^[a-z0-9-]{1,63}\Z", _("Enter a–z, 0–9 and hyphens, 63 at most."))],
        help_text=_("Cannot be changed: certificates are issued to this name"),
    )
    field_order = ["name"]


class PortChangeForm(VersionedForm):
    customer = AutocompleteField(label=_("Customer"), of="customers", required=False)
    description = forms.CharField(label=_("Description"), max_length=100, required=False)
    kind = forms.ChoiceField(label=_("Kind"), choices=[("uni", "UNI"), ("enni", "ENNI")], initial="uni")
    speed_bps = MbitField(label=_("Speed (Mbit/s)"))
    oversubscription_percent = _number(
        label=_("Bookable part of the speed (%)"),
        required=False,
        help_text=_("200 means an oversubscription of 2 to 1; empty: the policy or the rate below applies"),
    )
    bookable_bps = MbitField(
        label=_("Bookable (Mbit/s)"), required=False, help_text=_("Instead of a part of the speed")
    )
    max_frame = _size(
        label=_("Largest frame (bytes)"),
        initial=Port._meta.get_field("max_frame").default,
        help_text=_("Without FCS"),
    )
    accept_affected = _accept_affected()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.initial.get("oversubscription_percent") is not None:
            # Leave the rate empty, because it is computed from the percentage.
            self.initial["bookable_bps"] = None


class PortCreateForm(PortChangeForm, PicksInterfaces):
    accept_affected = None  # type: ignore[assignment]
    router = AutocompleteField(label=_("Router"), of="routers")
    interface = InterfaceField(label=_("Interface"), router_field="router", fills={"speed_bps": "speed_bps"})
    field_order = ["router", "interface"]


def _side_fields(which: str) -> dict[str, forms.Field]:
    letter = which.upper()
    return {
        f"{which}_router": AutocompleteField(label=_("%(side)s router") % {"side": letter}, of="routers"),
        f"{which}_interface": InterfaceField(
            label=_("%(side)s interface") % {"side": letter},
            router_field=f"{which}_router",
            fills={f"{which}_ip_mtu": "ip_mtu"},
        ),
        f"{which}_metric": _number(label=_("%(side)s metric") % {"side": letter}, initial=10),
        f"{which}_ip_mtu": _size(
            label=_("%(side)s IP MTU (bytes)") % {"side": letter},
            required=False,
            help_text=_("Empty: unknown"),
        ),
    }


class LinkForm(PicksInterfaces):
    """The form for a backbone link: both sides, and the properties of the link."""

    ipv4 = forms.BooleanField(label=_("Carries IPv4"), required=False, initial=True)
    ipv6 = forms.BooleanField(label=_("Carries IPv6"), required=False, initial=True)
    in_service = forms.BooleanField(label=_("In service"), required=False, initial=True)
    accept_affected = _accept_affected()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.base_fields = {**_side_fields("a"), **_side_fields("z"), **self.base_fields}  # type: ignore[misc]
        super().__init__(*args, **kwargs)


class VniRangeForm(VersionedForm):
    first = _number(label=_("First VNI"))
    last = _number(label=_("Last VNI"))
    reason = forms.CharField(label=_("Reason"), max_length=100)
