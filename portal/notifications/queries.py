"""Reads of webhooks and deliveries. Tenant scope is each function's first step."""

from typing import Any

from django.db.models import Q, QuerySet

from portal.accounts.models import Membership, User
from portal.notifications.models import Delivery, Webhook


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
