"""Members of customers and NOC staff: their roles, closed and reopened accounts, and retired customers.

A customer and the NOC always keep at least one admin. Members of a retired customer keep their rights in
other customers.
"""

from datetime import datetime

from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.db.models import QuerySet

from portal.accounts.errors import AccountClosed, LastAdmin, LastNocAdmin, NoAddress
from portal.accounts.invitations import account_at, account_make, invitations_withdraw
from portal.accounts.models import Customer, Invitation, Membership, User
from portal.accounts.own_account import account_opened_announce
from portal.accounts.permissions import managed_customers, visible_customers
from portal.accounts.tokens import noc_tokens_revoke, tokens_end


def members(user: User) -> QuerySet[Membership]:
    """Return the memberships of all customers in ``visible_customers(user)``."""
    found = Membership.objects.filter(customer__in=visible_customers(user))
    return found.select_related("customer", "user")


@transaction.atomic
def role_change(*, membership: Membership, role: str, now: datetime) -> None:
    """Change a member's role. Raises LastAdmin.

    If the new role is not admin, the member's open invitations are revoked.
    """
    team_lock(membership)
    if role != Membership.Role.ADMIN:
        another_admin_stays(membership)
        invitations_withdraw(invited_by=membership.user, customers=[membership.customer], now=now)
    Membership.objects.filter(pk=membership.pk).update(role=role)


@transaction.atomic
def member_remove(*, membership: Membership, now: datetime) -> None:
    """Delete a membership, and revoke the member's open invitations. Raises LastAdmin.

    The account remains open.
    """
    team_lock(membership)
    another_admin_stays(membership)
    invitations_withdraw(invited_by=membership.user, customers=[membership.customer], now=now)
    Membership.objects.filter(pk=membership.pk).delete()


def team_lock(membership: Membership) -> None:
    """Lock a customer's members for one change at a time.

    Otherwise two concurrent changes could remove the last two admins. The membership is locked before the
    customer, because some callers have already locked the membership.
    """
    Membership.objects.select_for_update().filter(pk=membership.pk).first()
    Customer.objects.select_for_update().get(pk=membership.customer_id)


def customer_lock(customer: Customer) -> Customer:
    """Lock the row of ``customer`` for a deletion, and return it.

    Memberships are locked first, as in ``team_lock``.
    """
    memberships_lock(customer_id=customer.pk)
    return Customer.objects.select_for_update().get(pk=customer.pk)


def memberships_lock(*, customer_id: int) -> None:
    """Lock all memberships of a customer. Call it before the customer's row is locked."""
    list(Membership.objects.select_for_update().filter(customer=customer_id).order_by("pk"))


def another_admin_stays(membership: Membership) -> None:
    """Raise LastAdmin if the member is the customer's only admin. Call ``team_lock`` first."""
    admins = Membership.objects.filter(
        customer=membership.customer, role=Membership.Role.ADMIN, user__is_active=True
    )
    if admins.filter(pk=membership.pk).exists() and not admins.exclude(pk=membership.pk).exists():
        raise LastAdmin(customer=membership.customer.name)


def customer_retire(*, customer: Customer, now: datetime) -> None:
    """Retire a customer. The caller must have locked its row and checked that the customer is not in use.

    Open invitations are revoked. The accounts of members who belong to no other customer and are not NOC
    staff are closed, and their API tokens are revoked. Memberships are kept for the record.
    """
    Customer.objects.filter(pk=customer.pk).update(retired_at=now)
    open_invitations = Invitation.objects.filter(accepted_at__isnull=True, revoked_at__isnull=True)
    open_invitations.filter(customer=customer).update(revoked_at=now)
    elsewhere = Membership.objects.filter(customer__retired_at__isnull=True).values("user")
    members = User.objects.filter(memberships__customer=customer, noc_role=User.NocRole.NONE)
    leaving = list(members.exclude(pk__in=elsewhere).values_list("pk", flat=True))
    User.objects.filter(pk__in=leaving, is_active=True).update(is_active=False, closed_with=customer)
    tokens_end(leaving, now=now)


def customer_reopen(*, customer: Customer, now: datetime) -> None:
    """Undo the retirement of a customer. The caller must have locked its row.

    Accounts of its members are reopened if the retirement of this or another customer closed them. They keep
    their roles, passwords, and sessions that have not expired. API tokens and invitations remain revoked,
    because their owners may have given them to others.
    """
    Customer.objects.filter(pk=customer.pk).update(retired_at=None)
    closed = User.objects.filter(closed_with__isnull=False, memberships__customer=customer)
    returning = list(closed.values_list("pk", flat=True))
    User.objects.filter(pk__in=returning, closed_with__isnull=False).update(is_active=True, closed_with=None)
    tokens_end(returning, now=now)


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

    The old password no longer works. An open account does not change. Raises NoAddress if it has no address.
    """
    if not person.email:
        raise NoAddress(username=person.username)
    closed = User.objects.filter(pk=person.pk, is_active=False)
    if closed.update(is_active=True, closed_with=None, password=make_password(None)):
        tokens_end([person.pk], now=now)
        account_opened_announce(user=person, now=now)
