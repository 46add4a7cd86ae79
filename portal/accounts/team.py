"""The members of a customer and their roles. Changes of members never remove a customer's last admin."""

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from portal.accounts.errors import LastAdmin
from portal.accounts.invitations import invitations_withdraw
from portal.accounts.models import Customer, Membership, User
from portal.accounts.permissions import visible_customers


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
