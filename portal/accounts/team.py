"""The members of a customer and their roles, and the retirement of a customer.

Changes of members never remove a customer's last admin. Members of a retired customer keep their rights in
other customers.
"""

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from portal.accounts.errors import LastAdmin
from portal.accounts.invitations import invitations_withdraw
from portal.accounts.models import Customer, Invitation, Membership, User
from portal.accounts.permissions import visible_customers
from portal.accounts.tokens import tokens_end


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
