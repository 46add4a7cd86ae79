"""Reads of webhooks, deliveries and mails. Tenant scope is the first step of each that reads for a user."""

from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet

from portal.accounts.models import Membership, User
from portal.accounts.password_reset import ACCOUNT_OPENED
from portal.core import clock
from portal.notifications.models import Delivery, Mail, Webhook

_LATELY = timedelta(minutes=5)


def webhooks(user: User) -> QuerySet[Webhook]:
    """The webhooks that this user may know of: also those of customers where they may not manage them."""
    found: QuerySet[Webhook] = Webhook.objects.visible_to(user).select_related("customer")
    return found


def managed_webhooks(user: User) -> QuerySet[Webhook]:
    """Those whose addresses and logs this user may read: of the customers they run, for the NOC all."""
    found = webhooks(user)
    if user.is_noc:
        return found
    return found.filter(
        Q(customer__memberships__user=user, customer__memberships__role=Membership.Role.ADMIN)
    )


def deliveries(user: User) -> QuerySet[Delivery]:
    """The deliveries that this user may know of."""
    found: QuerySet[Any] = Delivery.objects.visible_to(user).select_related("webhook__customer")
    return found


def mails_are_late() -> bool:
    """Whether the mail server has lately taken nothing of what it was offered, whoever it is for."""
    refused = Mail.objects.filter(next_try_at__isnull=False, tries__gte=1)
    taken = Mail.objects.filter(state=Mail.State.SENT, settled_at__gte=clock.now() - _LATELY)
    return refused.exists() and not taken.exists()


def first_password_mail(person: User) -> Mail | None:
    """The last mail with the link to choose a password by, for whom the NOC opened an account."""
    found: QuerySet[Mail] = Mail.objects.filter(user=person, kind=ACCOUNT_OPENED)
    return found.order_by("-event_id").first()
