"""The rate fields of the forms: a number and its unit, cleaned to bit/s."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import Customer
from portal.core.quantities import Quantity, RateUnreadable
from portal.core.units import rate_text
from portal.web.forms.base import TablerForm
from portal.web.forms.numbers import RateField, refused

MBIT, GBIT = 10**6, 10**9
UNITS = [(MBIT, "Mbit/s"), (GBIT, "Gbit/s")]
_LARGEST_BPS = 10**18


class BandwidthForm(TablerForm):
    """The bandwidth of a line; cleans to ``cir_bps``, in bit/s."""

    # The fields with rates. Each has a select of its unit; a unit in the text takes precedence.
    rates: ClassVar[tuple[str, ...]] = ("cir",)

    cir = RateField(
        label=_("Bandwidth"),
        widget=forms.TextInput(attrs={"inputmode": "decimal"}),
        error_messages={"required": _("Enter a bandwidth.")},
    )
    cir_unit = forms.TypedChoiceField(label=_("Unit"), coerce=int, choices=UNITS, initial=MBIT)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        for name in self.rates:
            if name in cleaned and f"{name}_unit" in cleaned:
                rate: Quantity | None = cleaned[name]
                bps = rate.of(cleaned[f"{name}_unit"] or MBIT) if rate else Decimal(0)
                if not 0 <= bps <= _LARGEST_BPS or bps != int(bps):
                    self.add_error(name, refused(RateUnreadable(value=rate.written if rate else "")))
                else:
                    cleaned[f"{name}_bps"] = int(bps)
        return cleaned


class OtherBandwidthForm(BandwidthForm):
    """Change only the bandwidth of an existing line. The field has the focus."""

    def __init__(self, data: Any, *, cir_bps: int, customer: Customer) -> None:
        super().__init__(data, initial=rate_initial("cir", cir_bps))
        self.fields["cir"].help_text = approval_help([customer])
        self.fields["cir"].widget.attrs["autofocus"] = True


def approval_help(customers: Iterable[Customer]) -> str:
    """Return the bandwidth from which an order of these customers needs approval.

    "" where no order needs it, or where the customers have different limits.
    """
    limits = {customer.approve_up_to_bps for customer in customers}
    limit = limits.pop() if len(limits) == 1 else None
    if limit is None:
        return ""
    return gettext("More than {limit} waits for the NOC's approval.").format(limit=rate_text(limit))


def rate_initial(name: str, bps: int) -> dict[str, Any]:
    """Return a rate (bit/s) as number and unit, for the fields of the form."""
    unit = GBIT if bps % GBIT == 0 else MBIT
    return {name: (Decimal(bps) / unit).normalize(), f"{name}_unit": unit}
