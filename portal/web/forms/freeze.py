"""Freezing a router: why, and for how long."""

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from portal.inventory.models.router_freeze import LONGEST_REASON
from portal.web.forms.base import TablerForm

_HOURS = (1, 2, 4, 8, 24, 72, 168)


def _lengths() -> list[tuple[int, str]]:
    return [(n, ngettext("%(n)s hour", "%(n)s hours", n) % {"n": n}) for n in _HOURS]


class FreezeForm(TablerForm):
    """Cleans to ``reason`` and ``hours``."""

    reason = forms.CharField(label=_("Why"), max_length=LONGEST_REASON)
    hours = forms.TypedChoiceField(label=_("For"), coerce=int, choices=_lengths, initial=2)
