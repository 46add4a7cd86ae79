"""NOC staff: who they are, how they come, and what they may. The NOC is never left without an admin."""

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from portal.accounts.account_creation import account_make
from portal.accounts.email_lookup import account_at
from portal.accounts.errors import AccountClosed, LastNocAdmin
from portal.accounts.invitations import invitations_withdraw
from portal.accounts.models import Customer, User
from portal.accounts.password_reset import account_opened_announce
from portal.accounts.permissions import managed_customers
from portal.accounts.tokens import noc_tokens_revoke

_RISING = (User.NocRole.NONE, User.NocRole.NOC, User.NocRole.NOC_ADMIN)


def noc_staff() -> QuerySet[User]:
    """All of them, those whose accounts are closed last."""
    return User.objects.exclude(noc_role=User.NocRole.NONE).order_by("-is_active", "username")


@transaction.atomic
def staff_add(*, username: str, email: str, role: str, now: datetime) -> User:
    """Give ``role`` to the account of that name and address, or make one; its owner is mailed a link to
    choose a password by.

    Both have to fit an account that is there, so that a slip gives no rights to somebody else. Raises
    UsernameTaken, AddressTaken, and what ``noc_role_change`` raises.
    """
    known = account_at(email, among=User.objects.filter(username__iexact=username))
    if known is not None:
        noc_role_change(person=known, role=role, now=now)
        return known
    user = account_make(username=username, email=email, password=None, noc_role=role)
    account_opened_announce(user=user, now=now)
    return user


@transaction.atomic
def noc_role_change(*, person: User, role: str, now: datetime) -> None:
    """Make somebody NOC user, NOC admin or neither. Raises AccountClosed, LastNocAdmin.

    New rights are not for old tokens: with a rise, those with the scope ``noc`` are revoked. Open
    invitations end with the right to send them.
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
    """Raises LastNocAdmin where nobody else is one. Call it in the transaction that takes the role.

    The admins are locked, in one order: of two, none can rely on the other staying.
    """
    admins = User.objects.filter(noc_role=User.NocRole.NOC_ADMIN, is_active=True).order_by("pk")
    found = admins.select_for_update(no_key=True).values_list("pk", flat=True)
    if list(found) == [person.pk]:
        raise LastNocAdmin(username=person.username)
