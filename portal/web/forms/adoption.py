"""Taking a found line over: what it is called and sold as from now on."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import User
from portal.inventory.found_lines import FoundLine
from portal.web.forms.bandwidth import BandwidthForm
from portal.web.forms.numbers import WholeNumberField
from portal.web.line_names import name_after

_USUAL_MTU = 1500


class AdoptionForm(BandwidthForm):
    """Its cleaned data have ``description``, ``svc_mtu`` (bytes) and ``cir_bps`` (bit/s)."""

    description = forms.CharField(label=_("Name or reference"), max_length=100, required=False)
    svc_mtu = WholeNumberField(
        label=_("Largest packet (MTU)"),
        widget=forms.TextInput(attrs={"inputmode": "numeric"}),
        error_messages={"required": _("Enter the size of the largest packet.")},
    )

    def __init__(self, data: Any, *, line: FoundLine, user: User) -> None:
        ends = [end for end in (line.a, line.z) if end]
        name = next((end.tag for end in ends if end.tag), "") or name_after(
            [str(end.router.site) for end in ends], user=user
        )
        super().__init__(data, initial={"description": name, "svc_mtu": _proposed_mtu(line)})
        self.fields["cir"].widget.attrs["autofocus"] = True


def _proposed_mtu(line: FoundLine) -> int:
    """The smaller one of its ports', where they tell; what is usual if that is less."""
    told = [end.ip_mtu for end in (line.a, line.z) if end and end.ip_mtu]
    return min([_USUAL_MTU, *told])
