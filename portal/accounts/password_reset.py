"""Forgotten passwords, and first ones: the link is made when the mail is sent, so it rests in no table and
no queue."""

from datetime import datetime
from typing import Any

from allauth.account.forms import ResetPasswordForm as AllauthForm
from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from django.http import HttpRequest
from django.urls import reverse

from portal.accounts import mail
from portal.accounts.models import User
from portal.core import clock
from portal.events.operations import send_task

SEND_PASSWORD_RESET = "notifications.send_password_reset"  # noqa: S105 (a task's name)
SEND_ACCOUNT_OPENED = "notifications.send_account_opened"


class ResetPasswordForm(AllauthForm):
    """Answers alike for addresses that are known and that are not."""

    def save(self, request: HttpRequest, **unused: Any) -> str:
        for user in self.users:
            asked = clock.now()
            send_task(SEND_PASSWORD_RESET, user.pk, asked.isoformat(), now=asked)
        address: str = self.cleaned_data["email"]
        return address


def account_opened_ask(*, user: User, now: datetime) -> None:
    """Have the owner of an account without a password mailed the link to choose one by."""
    send_task(SEND_ACCOUNT_OPENED, user.pk, now.isoformat(), now=now)


def password_reset_mail(*, user_id: int, asked: str) -> None:
    """Send one user the link; it holds for PASSWORD_RESET_TIMEOUT and until the password changes.

    ``asked``: when it was asked for, by which a mail that is sent again is known.
    """
    _send(user_id, template="password_reset", event=f"password-reset-{user_id}-{asked}")


def account_opened_mail(*, user_id: int, asked: str) -> None:
    """As ``password_reset_mail``, to whom the NOC opened an account."""
    _send(user_id, template="account_opened", event=f"account-opened-{user_id}-{asked}")


def _send(user_id: int, *, template: str, event: str) -> None:
    user = User.objects.filter(pk=user_id, is_active=True).exclude(email="").first()
    if user is None:
        return
    key = default_token_generator.make_token(user)
    path = reverse("account_reset_password_from_key", kwargs={"uidb36": user_pk_to_url_str(user), "key": key})
    mail.send(
        to=user.email,
        template=template,
        event=event,
        username=user.username,
        link=mail.link(path),
    )
