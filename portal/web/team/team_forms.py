"""The forms to invite people and to accept an invitation."""

from typing import Any

from django import forms
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import Membership, User
from portal.web.fields.base import TablerForm

PASSWORD_HELP = _("At least 12 characters, and not one of the usual ones.")


class InviteForm(TablerForm):
    """The form to invite a person, with a role."""

    email = forms.EmailField(label=_("E-mail address"), max_length=254)
    role = forms.ChoiceField(
        label=_("Role"),
        choices=Membership.Role.choices,
        help_text=_(
            "Viewers can see everything, operators can also order and change lines, admins can also"
            " manage the team."
        ),
    )


class RoleForm(forms.Form):
    """The form to change a member's role."""

    role = forms.ChoiceField(choices=Membership.Role.choices)


class NewPasswordForm(TablerForm):
    """A form with a new password. The password must not resemble the account's name or address."""

    password = forms.CharField(
        label=_("Password"),
        strip=False,
        max_length=256,
        help_text=PASSWORD_HELP,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def __init__(self, *args: Any, account: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._account = account

    def clean(self) -> dict[str, Any]:
        wanted = super().clean() or {}
        self._account.username = wanted.get("username", self._account.username)
        if "password" in wanted:
            try:
                validate_password(wanted["password"], user=self._account)
            except forms.ValidationError as error:
                self.add_error("password", error)
        return wanted


class NewAccountForm(NewPasswordForm):
    """The form to create an account for an invited person, with a user name and a password."""

    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
    )
    field_order = ("username", "password")
