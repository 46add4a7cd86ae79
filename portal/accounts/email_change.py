"""Change of a user's e-mail address. A mail verifies the new address before it is used, and the old address
is notified. The link is created when the mail is sent, so no table and no queue contains it.
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
from portal.core.integrity_errors import integrity_errors_as
from portal.events.outbox import announce

# ``data``: {"user": <id>, "to": the new address}. That address gets the link.
EMAIL_CHANGE_REQUESTED = "account.email_change_asked"
# ``data``: {"user": <id>, "to": the old address}. That address gets the notification.
EMAIL_CHANGED = "account.email_changed"
GOOD_FOR = timedelta(days=1)
_SALT = "email-change"


@transaction.atomic
def email_change_request(*, user: User, email: str, now: datetime) -> None:
    """Mail ``email`` a link. The response does not reveal whether the address belongs to an account."""
    announce(EMAIL_CHANGE_REQUESTED, data={"user": user.pk, "to": email}, now=now)


@transaction.atomic
def email_change(*, user: User, signed: str, now: datetime) -> str:
    """Set the address that a link was mailed to, for mails and sign-in; return it. Raises EmailChangeOver,
    AddressTaken.
    """
    email, before = email_change_of(signed, user=user), user.email
    taken = dict.fromkeys(
        ("one_user_per_address", "unique_verified_email"), lambda: AddressTaken(email=email)
    )
    with integrity_errors_as(taken):
        if not User.objects.filter(pk=user.pk, email=before, is_active=True).update(email=email):
            raise EmailChangeOver
        # Users sign in by both tables; the old address must stop working.
        EmailAddress.objects.filter(user=user).exclude(email=email.lower()).delete()
        EmailAddress.objects.update_or_create(
            user=user, email=email.lower(), defaults={"verified": True, "primary": True}
        )
    if before:
        announce(EMAIL_CHANGED, data={"user": user.pk, "to": before}, now=now)
    return email


def email_change_of(signed: str, *, user: User) -> str:
    """Return the address that a link of this user verifies.

    Raises EmailChangeOver if the link belongs to another user or is too old, or if the address or the
    password has changed since.
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
    """Return the path of the link."""
    signed = signing.dumps({**_bound_to(user), "to": to}, salt=_SALT)
    return reverse("web:email-change-confirm", kwargs={"signed": signed})


def _bound_to(user: User) -> dict[str, Any]:
    """Return the facts of the account that a link is bound to. A user who changes the password thus
    invalidates links that an attacker requested.
    """
    password = salted_hmac(_SALT, user.password, algorithm="sha256").hexdigest()[:16]
    return {"user": user.pk, "from": user.email, "password": password}
