"""Forms to adopt found lines: the customer, name, MTU and bandwidth of each line."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal.accounts.models import User
from portal.inventory.found_lines import FoundLine
from portal.netbox_sync.l2vpn_proposals import Proposal
from portal.vll.operations import Adoption
from portal.web.fields.autocomplete import AutocompleteField
from portal.web.fields.base import TablerForm
from portal.web.fields.numbers import SizeField
from portal.web.lines.bandwidth_form import BandwidthForm
from portal.web.lines.line_names import name_after
from portal.web.noc.inventory.inventory_forms import MbitField

_USUAL_MTU, _LARGEST = 1500, 2**31


def _customer_field(**more: Any) -> AutocompleteField:
    return AutocompleteField(label=gettext_lazy("Customer"), of="customers", required=False, **more)


def _mtu_field(**more: Any) -> SizeField:
    return SizeField(
        label=gettext_lazy("Largest packet (MTU)"),
        min_value=0,
        max_value=_LARGEST,
        widget=forms.TextInput(attrs={"inputmode": "numeric"}),
        **more,
    )


def _name_field() -> forms.CharField:
    return forms.CharField(label=gettext_lazy("Name or reference"), max_length=100, required=False)


class AdoptionForm(BandwidthForm):
    """The form to adopt one line.

    Its ``cleaned_data`` has ``customer``, ``description``, ``svc_mtu`` (bytes) and ``cir_bps`` (bit/s).
    """

    customer = _customer_field(
        help_text=gettext_lazy(
            "Ports without a customer, or not in the portal yet, are assigned to this customer"
        )
    )
    description = _name_field()
    svc_mtu = _mtu_field(error_messages={"required": gettext_lazy("Enter the size of the largest packet.")})

    def __init__(
        self, data: Any, *, line: FoundLine, customer: str, user: User, netbox: Proposal | None = None
    ) -> None:
        name = proposed_name(line, netbox) or name_after(
            [str(end.router.site) for end in line.ends], user=user
        )
        initial = {"customer": customer, "description": name, "svc_mtu": proposed_mtu(line)}
        super().__init__(data, initial=initial)
        self.fields["cir"].widget.attrs["autofocus"] = True


class AdoptionsForm(TablerForm):
    """The common values of several lines. The row of a line may have other values."""

    customer = _customer_field(
        help_text=gettext_lazy("Used if a line’s ports have no customer, or are not in the portal yet")
    )
    svc_mtu = _mtu_field(required=False)
    cir_bps = MbitField(label=gettext_lazy("Bandwidth (Mbit/s)"), required=False)


class AdoptionRowForm(TablerForm):
    """The row of one of several lines to adopt. If a field is empty, the common value applies."""

    take = forms.BooleanField(label=gettext_lazy("Take over"), required=False, initial=True)
    customer = _customer_field()
    description = _name_field()
    svc_mtu = _mtu_field(required=False)
    cir_bps = MbitField(label=gettext_lazy("Bandwidth (Mbit/s)"), required=False)

    def __init__(self, data: Any, *, line: FoundLine, initial: dict[str, Any] | None = None) -> None:
        super().__init__(data, prefix=str(line.id), initial=initial or {})
        self._line = line
        # Use the suggestions of the common field, because a hundred separate lists would be too long.
        self.fields["customer"].widget = forms.TextInput(
            attrs={"class": "form-control", "list": "id_customer-names", "maxlength": "100"}
        )
        for field in self.fields.values():
            field.widget.attrs["aria-label"] = f"{field.label}: {where(line)}"

    @property
    def columns(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name != "take"]

    def adoption(self, for_all: AdoptionsForm) -> Adoption | None:
        """Return the requested adoption; None if the line is not selected, or a value is missing or invalid.

        Errors about missing values are added to the form. ``for_all``: the form with the common values.
        """
        if not (self.is_valid() and for_all.is_valid() and self.cleaned_data["take"]):
            return None
        values = {
            name: common if self.cleaned_data[name] is None else self.cleaned_data[name]
            for name, common in for_all.cleaned_data.items()
        }
        if values["svc_mtu"] is None:
            self.add_error("svc_mtu", _("Enter the size of the largest packet, here or for all."))
        if values["cir_bps"] is None:
            self.add_error("cir_bps", _("Enter a bandwidth, here or for all."))
        if self.errors:
            return None
        return Adoption(found_line=self._line.id, description=self.cleaned_data["description"], **values)


def where(line: FoundLine) -> str:
    return " – ".join(f"{end.router}:{end.interface}" for end in line.ends)


def tag_of(line: FoundLine) -> str:
    """Return the description of the line on a router, from the first end with a description; otherwise ""."""
    return next((end.tag for end in line.ends if end.tag), "")


def proposed_name(line: FoundLine, netbox: Proposal | None) -> str:
    """Return the name of the L2VPN in NetBox. If there is no L2VPN, return the description on a router."""
    return netbox.l2vpn if netbox else tag_of(line)


def proposed_mtu(line: FoundLine) -> int:
    """Return the smallest IP MTU that the ends' interfaces report, but at most 1500."""
    return min([_USUAL_MTU, *(end.ip_mtu for end in line.ends if end.ip_mtu)])
