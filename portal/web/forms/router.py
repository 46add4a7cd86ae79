"""The forms of a router's page: freeze the router, declare it dead, and accept a calibration."""

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from portal.inventory.models.router_freeze import LONGEST_REASON
from portal.web.forms.base import TablerForm

_HOURS = (1, 2, 4, 8, 24, 72, 168)


def _lengths() -> list[tuple[int, str]]:
    return [(n, ngettext("%(n)s hour", "%(n)s hours", n) % {"n": n}) for n in _HOURS]


class FreezeForm(TablerForm):
    """The form to freeze a router, with the reason and the duration in hours."""

    reason = forms.CharField(
        label=_("Why"),
        max_length=LONGEST_REASON,
        error_messages={"required": _("Enter the reason for the freeze.")},
    )
    hours = forms.TypedChoiceField(label=_("For"), coerce=int, choices=_lengths, initial=2)


class DeadForm(TablerForm):
    """The form to declare a router dead, with the reason."""

    reason = forms.CharField(
        label=_("Why it will not come back"),
        max_length=500,
        error_messages={"required": _("Give a reason why the router is dead: it is kept.")},
    )


class CalibrationForm(TablerForm):
    """The form to accept the output of a calibration. Its errors contain the reasons for a refusal."""

    printed = forms.CharField(widget=forms.Textarea(attrs={"rows": 4}))
    accept_affected = forms.BooleanField(
        label=_("Even if its lines have then booked more than its cores"), required=False
    )
