"""The sign-in form in the portal's words."""

from typing import Any

from allauth.account.forms import LoginForm
from django.utils.translation import gettext_lazy as _


class SignInForm(LoginForm):
    """User name or e-mail address, and password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].label = _("User name or e-mail")
        self.fields["login"].widget.attrs |= {"autocomplete": "username", "autocapitalize": "none"}
