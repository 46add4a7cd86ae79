"""The mails that a user wants. Users choose on a page, or unsubscribe in a mail program (RFC 8058)."""

from collections.abc import Collection
from datetime import datetime

from django.core import signing
from django.db import transaction
from django.urls import reverse

from portal.accounts.models import Membership, User
from portal.notifications.errors import UnsubscribeLinkUnknown
from portal.notifications.models import Group, MailOptOut

_SIGNER = signing.Signer(salt="unsubscribe")
_FOR_MEMBERS = (Group.ORDERS, Group.FAILURES, Group.LINES, Group.STATUS, Group.REPORTS)


def groups_for(user: User) -> list[Group]:
    """Return the groups of mails that this user can choose, by the user's roles."""
    roles = set(user.memberships.values_list("role", flat=True))
    found = [*_FOR_MEMBERS] if roles else []
    if Membership.Role.ADMIN in roles or user.is_noc:
        found.append(Group.WEBHOOKS)
    return [*found, Group.NOC] if user.is_noc else found


def wanted_groups(user: User) -> set[str]:
    """Return the groups of mails that this user has not disabled."""
    return set(Group.values) - set(user.mail_opt_outs.values_list("group", flat=True))


@transaction.atomic
def mails_choose(*, user: User, wanted: Collection[str], now: datetime) -> None:
    """Enable the groups in ``wanted``, and disable the other groups that this user can choose."""
    concerned = set(groups_for(user))
    user.mail_opt_outs.filter(group__in=concerned & set(wanted)).delete()
    for group in sorted(concerned - set(wanted)):
        mails_stop(user=user, group=group, now=now)


def mails_stop(*, user: User, group: str, now: datetime) -> None:
    """Disable the mails of a group for this user. A second call has no effect."""
    MailOptOut.objects.get_or_create(user=user, group=group, defaults={"since": now})


def unsubscribe_path(user: User, group: str) -> str:
    """Return the path of the unsubscribe link in a mail. The link never expires, because mails may be old."""
    return reverse("web:unsubscribe", kwargs={"signed": _SIGNER.sign(f"{user.pk}.{group}")})


def unsubscribe_of(signed: str) -> tuple[User, Group]:
    """Return the user and the group of an unsubscribe link. Raises UnsubscribeLinkUnknown."""
    try:
        number, _, group = _SIGNER.unsign(signed).partition(".")
        return User.objects.get(pk=int(number)), Group(group)
    except (signing.BadSignature, ValueError, User.DoesNotExist) as error:
        raise UnsubscribeLinkUnknown from error
