"""The forms to add NOC staff and to change their roles."""

from django import forms
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import User
from portal.web.forms.base import TablerForm
from portal.web.templatetags.noc import NOC_ROLES

_STAFF = [(role, label) for role, label in NOC_ROLES.items() if role != User.NocRole.NONE]


class StaffForm(TablerForm):
    """The form to add a person to the NOC's staff, with a role."""

    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        help_text=_("For somebody who already has an account: the name and address of that account."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"}),
    )
    email = forms.EmailField(label=_("E-mail address"), max_length=254)
    role = forms.ChoiceField(label=_("Role"), choices=_STAFF)


class NocRoleForm(TablerForm):
    """The form to change a user's NOC role, or to remove it."""

    role = forms.ChoiceField(label=_("Role"), choices=list(NOC_ROLES.items()))
