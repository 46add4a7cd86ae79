"""The sign-in and password forms, with the portal's labels."""

from typing import Any

from allauth.account.forms import ChangePasswordForm, LoginForm, ResetPasswordKeyForm, SetPasswordForm
from django import forms
from django.utils.translation import gettext_lazy as _

from portal.web.team.team import PASSWORD_HELP


class SignInForm(LoginForm):
    """The form to sign in with the user name or e-mail address, and the password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].label = _("User name or e-mail")
        self.fields["login"].widget.attrs |= {"autocomplete": "username", "autocapitalize": "none"}


class _TwiceForm(forms.Form):
    """A form with a new password that the user enters twice."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password1"].label = _("New password")
        self.fields["password1"].help_text = PASSWORD_HELP
        self.fields["password2"].label = _("New password, again")


class OtherPasswordForm(_TwiceForm, ChangePasswordForm):
    """The form to change the password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["oldpassword"].label = _("Current password")


class FirstPasswordForm(_TwiceForm, SetPasswordForm):
    """The form to set a password for a user who has none."""


class ForgottenPasswordForm(_TwiceForm, ResetPasswordKeyForm):
    """The form to set a new password after the user has followed the link in a mail."""
