"""The members of a customer and their roles. A customer always has an admin."""

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from portal.accounts.errors import LastAdmin
from portal.accounts.invitations import invitations_withdraw
from portal.accounts.models import Customer, Membership, User
from portal.accounts.permissions import visible_customers


def members(user: User) -> QuerySet[Membership]:
    """Return the members of the customers that this user may know of."""
    found = Membership.objects.filter(customer__in=visible_customers(user))
    return found.select_related("customer", "user")


@transaction.atomic
def role_change(*, membership: Membership, role: str, now: datetime) -> None:
    """Change a member's role; revoke invitations that the new role may not send. Raises LastAdmin."""
    team_lock(membership)
    if role != Membership.Role.ADMIN:
        another_admin_stays(membership)
        invitations_withdraw(invited_by=membership.user, customers=[membership.customer], now=now)
    Membership.objects.filter(pk=membership.pk).update(role=role)


@transaction.atomic
def member_remove(*, membership: Membership, now: datetime) -> None:
    """End a membership and revoke the member's open invitations; the account stays. Raises LastAdmin."""
    team_lock(membership)
    another_admin_stays(membership)
    invitations_withdraw(invited_by=membership.user, customers=[membership.customer], now=now)
    Membership.objects.filter(pk=membership.pk).delete()


def team_lock(membership: Membership) -> None:
    """Lock a team for one change at a time, so that no two admins rely on each other to stay.

    The membership is locked first, in the same order as callers that already checked it under a lock.
    """
    Membership.objects.select_for_update().filter(pk=membership.pk).first()
    Customer.objects.select_for_update().get(pk=membership.customer_id)


def customer_lock(customer: Customer) -> Customer:
    """Lock ``customer`` for a deletion. Memberships are locked first, as in ``team_lock``."""
    memberships_lock(customer_id=customer.pk)
    return Customer.objects.select_for_update().get(pk=customer.pk)


def memberships_lock(*, customer_id: int) -> None:
    """Lock all memberships of a customer, before the customer itself."""
    list(Membership.objects.select_for_update().filter(customer=customer_id).order_by("pk"))


def another_admin_stays(membership: Membership) -> None:
    """Raise LastAdmin if the customer would have no other admin. Call it with the team locked."""
    admins = Membership.objects.filter(
        customer=membership.customer, role=Membership.Role.ADMIN, user__is_active=True
    )
    if admins.filter(pk=membership.pk).exists() and not admins.exclude(pk=membership.pk).exists():
        raise LastAdmin(customer=membership.customer.name)
