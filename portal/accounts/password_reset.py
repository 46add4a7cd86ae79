"""Forgotten passwords, and first ones: the link is made when the mail is sent, so it rests in no table and
no queue."""

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

# Whose owner is mailed the link; ``data`` of both: {"user": <id>}.
PASSWORD_RESET_ASKED = "account.password_reset_asked"  # noqa: S105 (an event's kind)
ACCOUNT_OPENED = "account.opened"


class ResetPasswordForm(AllauthForm):
    """Answers alike for addresses that are known and that are not."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = _("E-mail address")

    @transaction.atomic
    def save(self, request: HttpRequest, **unused: Any) -> str:
        for user in self.users:
            announce(PASSWORD_RESET_ASKED, data={"user": user.pk}, now=clock.now())
        address: str = self.cleaned_data["email"]
        return address


def account_opened_announce(*, user: User, now: datetime) -> None:
    """Have the owner of an account without a password mailed the link to choose one by."""
    announce(ACCOUNT_OPENED, data={"user": user.pk}, now=now)


def password_path(user: User) -> str:
    """The path of the link; it holds for PASSWORD_RESET_TIMEOUT and until the password changes."""
    key = default_token_generator.make_token(user)
    return reverse("account_reset_password_from_key", kwargs={"uidb36": user_pk_to_url_str(user), "key": key})
