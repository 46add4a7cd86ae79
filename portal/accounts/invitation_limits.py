"""Limits on invitations, because each invitation sends a mail to a person who did not request it."""

from datetime import datetime, timedelta

from django.db.models import QuerySet

from portal.accounts.errors import InvitedTooOften, TooManyInvitations
from portal.accounts.models import Customer, Invitation

WINDOW = timedelta(days=1)
PER_CUSTOMER, PER_ADDRESS = 100, 3


def check_may_invite(*, customer: Customer, email: str, now: datetime) -> None:
    """Check the limits on invitations. Raises TooManyInvitations or InvitedTooOften.

    The caller must have locked the row of ``customer``. All invitations of the last 24 hours count, including
    accepted and revoked ones. The limit per address counts only invitations of the same customer. Otherwise a
    customer could detect the invitations of other customers, and could use up their limit.
    """
    sent = Invitation.objects.filter(customer=customer, created_at__gt=now - WINDOW)
    if (again_at := _free_at(sent, PER_CUSTOMER)) is not None:
        raise TooManyInvitations(customer=customer.name, maximum=PER_CUSTOMER, again_at=again_at)
    if (again_at := _free_at(sent.filter(email__iexact=email), PER_ADDRESS)) is not None:
        raise InvitedTooOften(email=email, maximum=PER_ADDRESS, again_at=again_at)


def _free_at(sent: QuerySet[Invitation], maximum: int) -> datetime | None:
    """Return the time when the next invitation is allowed.

    At that time, fewer than ``maximum`` invitations are younger than WINDOW. Return None if there are fewer
    than ``maximum`` invitations at all.
    """
    moments = sent.order_by("-created_at").values_list("created_at", flat=True)
    last = moments[maximum - 1 : maximum].first()
    return None if last is None else last + WINDOW
