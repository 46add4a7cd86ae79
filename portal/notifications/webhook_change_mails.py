"""Mails about a new webhook, URL or secret, to the admins of the webhook's customer.

Nobody can disable these mails. Otherwise an attacker with a stolen token, or a user about to leave, would
disable them first.
"""

from datetime import datetime
from typing import Any, Literal

from django.db.models import QuerySet
from django.urls import reverse

from portal.accounts.models import ApiToken, Membership, User
from portal.core.http.absolute_urls import absolute_url
from portal.events.outbox import announce
from portal.notifications.models import Mail, Webhook

RECEIVER_CHANGED = "webhook.receiver_changed"


def receiver_changed(
    webhook: Webhook,
    *,
    what: Literal["added", "address", "secret"],
    by: User,
    token: ApiToken | None,
    now: datetime,
    to: str = "",
) -> None:
    """Store an event about a change of a webhook. Call it in the transaction of the change.

    ``to``: the new URL, if the URL changed. The event contains all data for the mail, because the webhook may
    be deleted before the mail is sent. The event contains no secrets.
    """
    event_data = {
        "webhook": webhook.pk,
        "what": what,
        "name": str(webhook),
        "customer": webhook.customer.name if webhook.customer else "",
        "before": webhook.url,
        "address": to or webhook.url,
        "by": by.username,
        "token": f"{token.name} (ll_{token.prefix}_…)" if token else "",
    }
    announce(RECEIVER_CHANGED, now=now, customer_id=webhook.customer_id, actor=by.username, data=event_data)


def who_runs_it(customer_id: int | None) -> QuerySet[User]:
    """Return the users who get mails about changes of webhooks: the customer's admins.

    For the NOC's own webhooks (``customer_id`` None) these are the NOC admins.
    """
    people = User.objects.filter(is_active=True).exclude(email="")
    if customer_id is None:
        return people.filter(noc_role=User.NocRole.NOC_ADMIN)
    return people.filter(memberships__customer=customer_id, memberships__role=Membership.Role.ADMIN)


def webhook_change_content(found: Mail) -> tuple[str, dict[str, Any]]:
    """Return the template and the values of a mail about a changed webhook."""
    return "webhook_changed", {**found.data, "link": absolute_url(reverse("web:webhooks"))}
