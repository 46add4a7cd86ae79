"""What NOC admins do with accounts: NOC roles, closing an account everywhere at once, and reopening it.

The NOC always has at least one admin.
"""

from datetime import datetime

from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.db.models import QuerySet

from portal.accounts.account_creation import account_at, account_make
from portal.accounts.errors import AccountClosed, LastNocAdmin, NoAddress
from portal.accounts.invitations import invitations_withdraw
from portal.accounts.models import Customer, Membership, User
from portal.accounts.own_account import account_opened_announce
from portal.accounts.permissions import managed_customers
from portal.accounts.team import another_admin_stays, team_lock
from portal.accounts.tokens import noc_tokens_revoke, tokens_end

_RISING = (User.NocRole.NONE, User.NocRole.NOC, User.NocRole.NOC_ADMIN)


def noc_staff() -> QuerySet[User]:
    """Return all NOC staff by user name. Closed accounts are last."""
    return User.objects.exclude(noc_role=User.NocRole.NONE).order_by("-is_active", "username")


@transaction.atomic
def staff_add(*, username: str, email: str, role: str, now: datetime) -> User:
    """Give a NOC role to the account with this name and address. If there is none, create the account.

    A new user gets a mail with a link to choose a password. An existing account must have both the name and
    the address, so that a typing error does not give rights to another person. Raises UsernameTaken,
    AddressTaken, or the errors of ``noc_role_change``.
    """
    existing = account_at(email, among=User.objects.filter(username__iexact=username))
    if existing is not None:
        noc_role_change(person=existing, role=role, now=now)
        return existing
    user = account_make(username=username, email=email, password=None, noc_role=role)
    account_opened_announce(user=user, now=now)
    return user


@transaction.atomic
def noc_role_change(*, person: User, role: str, now: datetime) -> None:
    """Change the NOC role of a user. Raises AccountClosed or LastNocAdmin.

    If the new role is higher, the user's tokens with the scope ``noc`` are revoked, so that old tokens do not
    get more rights. Open invitations that the user may no longer send are also revoked.
    """
    if role != User.NocRole.NOC_ADMIN:
        another_noc_admin_stays(person)
    found = User.objects.select_for_update(no_key=True).filter(pk=person.pk, is_active=True).first()
    if found is None:
        raise AccountClosed(username=person.username)
    User.objects.filter(pk=person.pk).update(noc_role=role)
    if _RISING.index(User.NocRole(role)) > _RISING.index(User.NocRole(found.noc_role)):
        noc_tokens_revoke(user=found, now=now)
    found.noc_role = role
    others = Customer.objects.exclude(pk__in=managed_customers(found))
    invitations_withdraw(invited_by=found, customers=others, now=now)


def another_noc_admin_stays(person: User) -> None:
    """Raise LastNocAdmin if ``person`` is the only NOC admin.

    Call it in the transaction that removes the role. The rows of all admins are locked in the same order.
    Therefore two concurrent transactions cannot remove the last two admins.
    """
    admins = User.objects.filter(noc_role=User.NocRole.NOC_ADMIN, is_active=True).order_by("pk")
    found = admins.select_for_update(no_key=True).values_list("pk", flat=True)
    if list(found) == [person.pk]:
        raise LastNocAdmin(username=person.username)


@transaction.atomic
def account_close(*, person: User, now: datetime) -> None:
    """Close an account: end its sessions and API tokens, withdraw its invitations, and remove its password.

    Roles and memberships are kept for the record. Sessions depend on the password. Because the password is
    removed, no old session works after the account is reopened. Raises LastNocAdmin, or LastAdmin if a
    customer would lose its only admin.
    """
    runs = person.memberships.filter(role=Membership.Role.ADMIN, customer__retired_at__isnull=True)
    for membership in runs.select_related("customer").order_by("customer"):
        team_lock(membership)
        another_admin_stays(membership)
    another_noc_admin_stays(person)
    User.objects.filter(pk=person.pk).update(is_active=False, closed_with=None, password=make_password(None))
    tokens_end([person.pk], now=now)
    invitations_withdraw(invited_by=person, customers=Customer.objects.all(), now=now)


@transaction.atomic
def account_reopen(*, person: User, now: datetime) -> None:
    """Reopen an account with its former roles, and mail the user a link to choose a password.

    The old password no longer works. An open account does not change. Raises NoAddress if the account has no
    mail address.
    """
    if not person.email:
        raise NoAddress(username=person.username)
    closed = User.objects.filter(pk=person.pk, is_active=False)
    if closed.update(is_active=True, closed_with=None, password=make_password(None)):
        tokens_end([person.pk], now=now)
        account_opened_announce(user=person, now=now)
