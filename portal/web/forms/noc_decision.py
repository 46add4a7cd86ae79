"""Forms for the NOC's decisions about orders and about samples in quarantine."""

from typing import TYPE_CHECKING

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.web.forms.base import TablerForm

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


class ApprovalForm(forms.Form):
    """The form to approve an order. ``plan``: the id of the plan that the user saw."""

    plan = forms.UUIDField()


def _reason(*, help_text: "str | _StrPromise", required: "str | _StrPromise") -> forms.CharField:
    return forms.CharField(
        label=_("Reason"),
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=help_text,
        error_messages={"required": required},
    )


class RejectionForm(TablerForm):
    """The form to reject an order, with the reason."""

    reason = _reason(
        help_text=_("The customer can read it"), required=_("Give a reason: the customer can read it.")
    )


class DiscardForm(TablerForm):
    """The form to discard samples in quarantine, with the reason."""

    reason = _reason(
        help_text=_("Kept with the decision"), required=_("Give a reason: it is kept with the decision.")
    )


class ForceEndForm(TablerForm):
    """The form to end an order without confirmation from the routers, with the reason."""

    reason = _reason(
        help_text=_("Kept with the order; the customer can read it"),
        required=_("Give a reason: it is kept with the order."),
    )
