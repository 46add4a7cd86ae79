"""Another e-mail address for one's own account: the new one is proven by a mail before it is used, and the
old one is told. The link is made when the mail is sent, so it rests in no table and no queue."""

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

# ``data``: {"user": <id>, "to": the new address}, whose reader is mailed the link.
EMAIL_CHANGE_ASKED = "account.email_change_asked"
# ``data``: {"user": <id>, "to": the old address}, whose reader is told.
EMAIL_CHANGED = "account.email_changed"
GOOD_FOR = timedelta(days=1)
_SALT = "email-change"


@transaction.atomic
def email_change_ask(*, user: User, email: str, now: datetime) -> None:
    """Mail ``email`` a link. Nobody learns here whether it belongs to an account."""
    announce(EMAIL_CHANGE_ASKED, data={"user": user.pk, "to": email}, now=now)


@transaction.atomic
def email_change(*, user: User, signed: str, now: datetime) -> str:
    """Use the address that a link was mailed to, for mails and signing in; which. Raises EmailChangeOver,
    AddressTaken."""
    email, before = email_change_of(signed, user=user), user.email
    taken = dict.fromkeys(
        ("one_user_per_address", "unique_verified_email"), lambda: AddressTaken(email=email)
    )
    with integrity_errors_as(taken):
        if not User.objects.filter(pk=user.pk, email=before, is_active=True).update(email=email):
            raise EmailChangeOver
        # Both are how people sign in: the old one must not do so any more.
        EmailAddress.objects.filter(user=user).exclude(email=email.lower()).delete()
        EmailAddress.objects.update_or_create(
            user=user, email=email.lower(), defaults={"verified": True, "primary": True}
        )
    if before:
        announce(EMAIL_CHANGED, data={"user": user.pk, "to": before}, now=now)
    return email


def email_change_of(signed: str, *, user: User) -> str:
    """The address that a link of this user's proves. Raises EmailChangeOver: for somebody else's link, an old
    one, and one from before the address or the password was changed."""
    try:
        said: dict[str, Any] = signing.loads(signed, salt=_SALT, max_age=GOOD_FOR)
    except signing.BadSignature as error:
        raise EmailChangeOver from error
    email = str(said.pop("to"))
    if said != _bound_to(user):
        raise EmailChangeOver
    return email


def email_change_path(user: User, *, to: str) -> str:
    """The path of the link."""
    signed = signing.dumps({**_bound_to(user), "to": to}, salt=_SALT)
    return reverse("web:email-change-confirm", kwargs={"signed": signed})


def _bound_to(user: User) -> dict[str, Any]:
    """What a link holds for: the account as it was. Whoever fears for it changes the password, and links that
    somebody else asked for end."""
    password = salted_hmac(_SALT, user.password, algorithm="sha256").hexdigest()[:16]
    return {"user": user.pk, "from": user.email, "password": password}
