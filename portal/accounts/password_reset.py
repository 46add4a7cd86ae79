"""Forgotten passwords: the link is made when the mail is sent, so it rests in no table and no queue."""

from datetime import datetime
from typing import Any

from allauth.account.forms import ResetPasswordForm as AllauthForm
from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from portal.accounts import mail
from portal.accounts.models import User
from portal.core import clock
from portal.events.operations import send_task

SEND_PASSWORD_RESET = "notifications.send_password_reset"  # noqa: S105 (a task's name)


class ResetPasswordForm(AllauthForm):
    """Answers alike for addresses that are known and that are not."""

    def save(self, request: HttpRequest, **unused: Any) -> str:
        for user in self.users:
            send_task(SEND_PASSWORD_RESET, user.pk, now=clock.now())
        address: str = self.cleaned_data["email"]
        return address


def password_reset_mail(*, user_id: int, now: datetime) -> None:
    """Send one user the link; it holds for PASSWORD_RESET_TIMEOUT and until the password changes."""
    user = User.objects.filter(pk=user_id, is_active=True).exclude(email="").first()
    if user is None:
        return
    key = default_token_generator.make_token(user)
    path = reverse("account_reset_password_from_key", kwargs={"uidb36": user_pk_to_url_str(user), "key": key})
    mail.send(
        to=user.email,
        subject=_("Choose a new password"),
        text=_(
            "Somebody asked for a new password for {username} at {portal}.\n\n"
            "Choose it here:\n{link}\n\n"
            "If it was not you, do nothing: your password stays as it is."
        ).format(username=user.username, portal=mail.portal_address(), link=mail.link(path)),
        identity=f"password-reset-{user.pk}-{int(now.timestamp())}",
    )
