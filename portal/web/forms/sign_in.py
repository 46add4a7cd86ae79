"""The sign-in and password forms, with the portal's labels."""

from typing import Any

from allauth.account.forms import ChangePasswordForm, LoginForm, ResetPasswordKeyForm, SetPasswordForm
from django import forms
from django.utils.translation import gettext_lazy as _

from portal.web.forms.team import PASSWORD_HELP


class SignInForm(LoginForm):
    """The user name or e-mail address, and the password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].label = _("User name or e-mail")
        self.fields["login"].widget.attrs |= {"autocomplete": "username", "autocapitalize": "none"}


class _TwiceForm(forms.Form):
    """A new password, entered twice."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password1"].label = _("New password")
        self.fields["password1"].help_text = PASSWORD_HELP
        self.fields["password2"].label = _("New password, again")


class OtherPasswordForm(_TwiceForm, ChangePasswordForm):
    """Another password instead of the present one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["oldpassword"].label = _("Current password")


class FirstPasswordForm(_TwiceForm, SetPasswordForm):
    """A password for a user without one."""


class ForgottenPasswordForm(_TwiceForm, ResetPasswordKeyForm):
    """A new password for a user who followed the link of a mail."""
