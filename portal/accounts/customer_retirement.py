"""Retirement of a customer, and its reversal. Members keep their rights in other customers."""

from datetime import datetime

from portal.accounts.models import Customer, Invitation, Membership, User
from portal.accounts.tokens import tokens_end


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
