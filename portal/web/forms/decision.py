"""The NOC's word on an order that is held."""

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.web.forms.look import TablerForm


class ApprovalForm(forms.Form):
    """``plan``: the one that the approver looked at."""

    plan = forms.UUIDField()


class RejectionForm(TablerForm):
    """Why not."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("The customer reads it"),
        error_messages={"required": _("Say why: the customer reads it.")},
    )


class DiscardForm(TablerForm):
    """Why samples in quarantine are discarded."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("It is kept with the decision"),
        error_messages={"required": _("Say why: it is kept with the decision.")},
    )


class ForceEndForm(TablerForm):
    """Why an order is ended without the routers' word."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("It is kept with the order, and the customer reads it"),
        error_messages={"required": _("Say why: it is kept with the order.")},
    )
