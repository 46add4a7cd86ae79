"""Links to reset a forgotten password or to choose a first password.

A link is created only when the mail is sent, so that no table and no queue contains it.
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

# The events for mails with a link to the owner of an account. ``data`` of both: {"user": <id>}.
PASSWORD_RESET_REQUESTED = "account.password_reset_asked"  # noqa: S105 (an event's kind)
ACCOUNT_OPENED = "account.opened"


class ResetPasswordForm(AllauthForm):
    """The form for a forgotten password. Its response is the same for known and unknown addresses."""

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
    """Request a mail with a link to choose a password, for an account that has no password."""
    announce(ACCOUNT_OPENED, data={"user": user.pk}, now=now)


def password_path(user: User) -> str:
    """Return the path of the link. It works for PASSWORD_RESET_TIMEOUT, but not after a password change."""
    key = default_token_generator.make_token(user)
    return reverse("account_reset_password_from_key", kwargs={"uidb36": user_pk_to_url_str(user), "key": key})
