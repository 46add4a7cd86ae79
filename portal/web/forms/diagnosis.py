"""The form to report trouble with a line to the NOC."""

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.web.forms.base import TablerForm


class TroubleForm(TablerForm):
    """The user's description of the trouble. The portal adds its diagnosis automatically."""

    note = forms.CharField(
        label=_("What do you see?"),
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("The verdict and all checks go to the NOC with it."),
    )
