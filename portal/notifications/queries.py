"""Queries of webhooks, deliveries and mails. Each query for a user first applies the tenant scope."""

from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet

from portal.accounts.models import Membership, User
from portal.accounts.password_reset import ACCOUNT_OPENED
from portal.core import clock
from portal.notifications.models import Delivery, Mail, Webhook

_LATELY = timedelta(minutes=5)


def webhooks(user: User) -> QuerySet[Webhook]:
    """Return the webhooks that this user may know of, also of customers where the user may not
    manage them.
    """
    found: QuerySet[Webhook] = Webhook.objects.visible_to(user).select_related("customer")
    return found


def managed_webhooks(user: User) -> QuerySet[Webhook]:
    """Return the webhooks whose URLs and logs this user may read: of managed customers, for the NOC all."""
    found = webhooks(user)
    if user.is_noc:
        return found
    return found.filter(
        Q(customer__memberships__user=user, customer__memberships__role=Membership.Role.ADMIN)
    )


def deliveries(user: User) -> QuerySet[Delivery]:
    """Return the deliveries that this user may know of."""
    found: QuerySet[Any] = Delivery.objects.visible_to(user).select_related("webhook__customer")
    return found


def mails_are_late() -> bool:
    """Return whether the mail server has lately accepted none of the mails, for any recipient."""
    refused = Mail.objects.filter(next_try_at__isnull=False, tries__gte=1)
    taken = Mail.objects.filter(state=Mail.State.SENT, settled_at__gte=clock.now() - _LATELY)
    return refused.exists() and not taken.exists()


def first_password_mail(person: User) -> Mail | None:
    """Return the last mail with the link to choose a first password, for an account that the NOC opened."""
    found: QuerySet[Mail] = Mail.objects.filter(user=person, kind=ACCOUNT_OPENED)
    return found.order_by("-event_id").first()
