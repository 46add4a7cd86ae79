"""Change of a user's e-mail address.

A link in a mail to the new address verifies that address. After the change, a mail to the old address reports
it. The link is created only when the mail is sent, so that no table and no queue contains it.
"""

from datetime import datetime, timedelta
from typing import Any

from allauth.account.models import EmailAddress
from django.core import signing
from django.db import transaction
from django.urls import reverse
from django.utils.crypto import salted_hmac

from portal.accounts.errors import AddressTaken, EmailChangeOver
from portal.accounts.models import User
from portal.core.db.integrity_errors import integrity_errors_as
from portal.events.outbox import announce

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
