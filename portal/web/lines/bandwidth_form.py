"""Forms with rates (a number and a unit, cleaned to bit/s), and default names of lines."""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import chain, count
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import Customer, User
from portal.core.quantities import Quantity, RateUnreadable
from portal.core.reader_texts import rate_text
from portal.vll import queries
from portal.vll.line_spec import LINE
from portal.web.fields.base import TablerForm
from portal.web.fields.numbers import property_field, refused

# The maximum length of a name without a number, so that there is space for a number.
_LONGEST = 90


def name_after(places: Sequence[str], *, user: User) -> str:
    """Return a name such as ``Zurich – Basel``.

    If ``user`` can see another line with this name, a number follows the name.
    """
    name = " – ".join(places)[:_LONGEST]
    alike = queries.vlls(user)
    for place in set(places):
        alike = alike.filter(description__icontains=place)
    taken = {_without_dashes(each) for each in alike.values_list("description", flat=True)}
    names = chain([name], (f"{name} {n}" for n in count(2)))
    return next(each for each in names if _without_dashes(each) not in taken)


def _without_dashes(name: str) -> str:
    """Return a key to compare names. ``Zurich – Basel`` and ``Zurich-Basel`` have the same key."""
    return " ".join(re.split(r"[\s–-]+", name)).casefold()


MBIT, GBIT = 10**6, 10**9
UNITS = [(MBIT, "Mbit/s"), (GBIT, "Gbit/s")]
_LARGEST_BPS = 10**18


class BandwidthForm(TablerForm):
    """A form with the bandwidth of a line. Its ``cleaned_data`` has ``cir_bps`` (bit/s)."""

    # The names of the fields with rates. Each has a select with units. A unit in the text takes precedence
    # over the select.
    rates: ClassVar[tuple[str, ...]] = ("cir",)

    cir = property_field(next(each for each in LINE if each.name == "cir_bps"))
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
    """The form to change only the bandwidth of an existing line. The field has the focus."""

    def __init__(self, data: Any, *, cir_bps: int, customer: Customer) -> None:
        super().__init__(data, initial=rate_initial("cir", cir_bps))
        self.fields["cir"].help_text = approval_help([customer])
        self.fields["cir"].widget.attrs["autofocus"] = True


def approval_help(customers: Iterable[Customer]) -> str:
    """Return a sentence with the bandwidth above which orders of these customers need approval.

    Return "" if no order needs approval, or if the customers have different limits.
    """
    limits = {customer.approve_up_to_bps for customer in customers}
    limit = limits.pop() if len(limits) == 1 else None
    if limit is None:
        return ""
    return gettext("More than {limit} waits for the NOC's approval.").format(limit=rate_text(limit))


def rate_initial(name: str, bps: int) -> dict[str, Any]:
    """Return the initial values of a rate's two fields, number and unit, for a rate in bit/s."""
    unit = GBIT if bps % GBIT == 0 else MBIT
    return {name: (Decimal(bps) / unit).normalize(), f"{name}_unit": unit}
