"""Changes that users make to their own account: name, e-mail address and password.

A link to verify an address or to choose a password is created only when its mail is sent, so that no table
and no queue contains it. After a change of the address, a mail to the old address reports it.
"""

from datetime import datetime, timedelta
from typing import Any

from allauth.account.forms import ResetPasswordForm as AllauthForm
from allauth.account.forms import default_token_generator
from allauth.account.models import EmailAddress
from allauth.account.utils import user_pk_to_url_str
from django.core import signing
from django.db import transaction
from django.http import HttpRequest
from django.urls import reverse
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_lazy as _

from portal.accounts.errors import AddressTaken, EmailChangeOver
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import integrity_errors_as
from portal.events.announcements import announce


def name_change(*, user: User, first_name: str, last_name: str) -> None:
    """Change the name that colleagues and the NOC see. The user name for sign-in does not change."""
    User.objects.filter(pk=user.pk).update(first_name=first_name, last_name=last_name)


# The event for the mail with the link. ``data``: {"user": <id>, "to": the new address, which gets the mail}.
EMAIL_CHANGE_REQUESTED = "account.email_change_asked"
# The event for the notification. ``data``: {"user": <id>, "to": the old address, which gets the mail}.
EMAIL_CHANGED = "account.email_changed"
GOOD_FOR = timedelta(days=1)
_SALT = "email-change"


@transaction.atomic
def email_change_request(*, user: User, email: str, now: datetime) -> None:
    """Request a mail with a link to the new address ``email``.

    The portal also sends the mail if ``email`` belongs to another account. Otherwise the user could find out
    which addresses have an account.
    """
    announce(EMAIL_CHANGE_REQUESTED, data={"user": user.pk, "to": email}, now=now)


@transaction.atomic
def email_change(*, user: User, signed: str, now: datetime) -> str:
    """Set the new address of a user, for mails and sign-in, and return the address. ``signed``: the signed
    part of the link.

    Raises EmailChangeOver or AddressTaken.
    """
    email, before = email_change_of(signed, user=user), user.email
    taken = dict.fromkeys(
        ("one_user_per_address", "unique_verified_email"), lambda: AddressTaken(email=email)
    )
    with integrity_errors_as(taken):
        if not User.objects.filter(pk=user.pk, email=before, is_active=True).update(email=email):
            raise EmailChangeOver
        # Users can sign in with the addresses in both tables. The old address must stop working in both.
        EmailAddress.objects.filter(user=user).exclude(email=email.lower()).delete()
        EmailAddress.objects.update_or_create(
            user=user, email=email.lower(), defaults={"verified": True, "primary": True}
        )
    if before:
        announce(EMAIL_CHANGED, data={"user": user.pk, "to": before}, now=now)
    return email


def email_change_of(signed: str, *, user: User) -> str:
    """Return the new address in a link. ``signed``: the signed part of the link.

    Raises EmailChangeOver if the link belongs to another user or is older than a day. Also raises it if the
    user's address or password has changed since the link was created.
    """
    try:
        bound_to: dict[str, Any] = signing.loads(signed, salt=_SALT, max_age=GOOD_FOR)
    except signing.BadSignature as error:
        raise EmailChangeOver from error
    email = str(bound_to.pop("to"))
    if bound_to != _bound_to(user):
        raise EmailChangeOver
    return email


def email_change_path(user: User, *, to: str) -> str:
    """Return the path of the link that verifies the new address ``to``."""
    signed = signing.dumps({**_bound_to(user), "to": to}, salt=_SALT)
    return reverse("web:email-change-confirm", kwargs={"signed": signed})


def _bound_to(user: User) -> dict[str, Any]:
    """Return the account's facts that must not change while a link is valid.

    If an attacker has requested a link, the user can invalidate it with a new password.
    """
    password = salted_hmac(_SALT, user.password, algorithm="sha256").hexdigest()[:16]
    return {"user": user.pk, "from": user.email, "password": password}


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
