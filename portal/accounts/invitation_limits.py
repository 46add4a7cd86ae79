"""The limits on a customer's invitations: each invitation is a mail to somebody who has not asked for it."""

from datetime import datetime, timedelta

from django.db.models import QuerySet

from portal.accounts.errors import InvitedTooOften, TooManyInvitations
from portal.accounts.models import Customer, Invitation

WINDOW = timedelta(days=1)
PER_CUSTOMER, PER_ADDRESS = 100, 3


def check_may_invite(*, customer: Customer, email: str, now: datetime) -> None:
    """Raises TooManyInvitations, InvitedTooOften. The caller has locked ``customer``.

    What was sent counts, whatever became of it. Of an address only the customer's own invitations do: else
    one tenant could see another's, and use up what another may send.
    """
    sent = Invitation.objects.filter(customer=customer, created_at__gt=now - WINDOW)
    if (again_at := _free_at(sent, PER_CUSTOMER)) is not None:
        raise TooManyInvitations(customer=customer.name, maximum=PER_CUSTOMER, again_at=again_at)
    if (again_at := _free_at(sent.filter(email__iexact=email), PER_ADDRESS)) is not None:
        raise InvitedTooOften(email=email, maximum=PER_ADDRESS, again_at=again_at)


def _free_at(sent: QuerySet[Invitation], maximum: int) -> datetime | None:
    """The time when the oldest of the newest ``maximum`` leaves the window; None while there are fewer."""
    moments = sent.order_by("-created_at").values_list("created_at", flat=True)
    last = moments[maximum - 1 : maximum].first()
    return None if last is None else last + WINDOW
