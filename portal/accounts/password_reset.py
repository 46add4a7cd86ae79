"""Links to reset a forgotten password or to choose a first one. The link is created when the mail is sent, so
no table and no queue contains it.
"""

from datetime import datetime
from typing import Any

from allauth.account.forms import ResetPasswordForm as AllauthForm
from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from django.db import transaction
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import User
from portal.core import clock
from portal.events.outbox import announce

# The owner of the account gets the link; ``data`` of both: {"user": <id>}.
PASSWORD_RESET_REQUESTED = "account.password_reset_asked"  # noqa: S105 (an event's kind)
ACCOUNT_OPENED = "account.opened"


class ResetPasswordForm(AllauthForm):
    """Respond in the same way to known and unknown addresses."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = _("E-mail address")

    @transaction.atomic
    def save(self, request: HttpRequest, **unused: Any) -> str:
        for user in self.users:
            announce(PASSWORD_RESET_REQUESTED, data={"user": user.pk}, now=clock.now())
        address: str = self.cleaned_data["email"]
        return address


def account_opened_announce(*, user: User, now: datetime) -> None:
    """Request a mail with the link to choose a password, for an account without one."""
    announce(ACCOUNT_OPENED, data={"user": user.pk}, now=now)


def password_path(user: User) -> str:
    """Return the path of the link, valid for PASSWORD_RESET_TIMEOUT and until the password changes."""
    key = default_token_generator.make_token(user)
    return reverse("account_reset_password_from_key", kwargs={"uidb36": user_pk_to_url_str(user), "key": key})
