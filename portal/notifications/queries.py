"""Queries for webhooks, deliveries and mails. Each query for a user applies the tenant scope first."""

from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet

from portal.accounts.models import Membership, User
from portal.accounts.own_account import ACCOUNT_OPENED
from portal.core import clock
from portal.notifications.models import Delivery, Mail, Webhook

_RECENT = timedelta(minutes=5)


def webhooks(user: User) -> QuerySet[Webhook]:
    """Return the webhooks whose existence this user may know: those of all customers of the user.

    The user is not necessarily allowed to manage them (see ``managed_webhooks``).
    """
    found: QuerySet[Webhook] = Webhook.objects.visible_to(user).select_related("customer")
    return found


def managed_webhooks(user: User) -> QuerySet[Webhook]:
    """Return the webhooks whose URLs and logs this user may read.

    These are the webhooks of customers where the user is an admin. NOC staff may read all of them.
    """
    found = webhooks(user)
    if user.is_noc:
        return found
    return found.filter(
        Q(customer__memberships__user=user, customer__memberships__role=Membership.Role.ADMIN)
    )


def deliveries(user: User) -> QuerySet[Delivery]:
    """Return the deliveries of all webhooks in ``webhooks(user)``."""
    found: QuerySet[Any] = Delivery.objects.visible_to(user).select_related("webhook__customer")
    return found


def mails_are_late() -> bool:
    """Return whether mails wait for a retry, and no mail at all was sent in the last 5 minutes."""
    refused = Mail.objects.filter(next_try_at__isnull=False, tries__gte=1)
    taken = Mail.objects.filter(state=Mail.State.SENT, settled_at__gte=clock.now() - _RECENT)
    return refused.exists() and not taken.exists()


def first_password_mail(person: User) -> Mail | None:
    """Return the newest mail with a link to set the first password of this account; None if there is none.

    Such mails are sent when the NOC opens an account.
    """
    found: QuerySet[Mail] = Mail.objects.filter(user=person, kind=ACCOUNT_OPENED)
    return found.order_by("-event_id").first()
