"""Whoever runs a webhook's customer is told where it leads from now on, and who saw to that.

Nobody opts out: whoever has somebody's token, or means to leave, would see to it first.
"""

from datetime import datetime
from typing import Any, Literal

from django.db.models import QuerySet
from django.urls import reverse

from portal.accounts.models import ApiToken, Membership, User
from portal.core.absolute_urls import absolute_url
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
    """Announce it, in the transaction that does it. ``to``: the new address, where it is another one.

    All that the mail says is in the event: the webhook may be gone when it is sent. Secrets are not.
    """
    said = {
        "webhook": webhook.pk,
        "what": what,
        "name": str(webhook),
        "customer": webhook.customer.name if webhook.customer else "",
        "before": webhook.url,
        "address": to or webhook.url,
        "by": by.username,
        "token": f"{token.name} (ll_{token.prefix}_…)" if token else "",
    }
    announce(RECEIVER_CHANGED, now=now, customer_id=webhook.customer_id, actor=by.username, data=said)


def who_runs_it(customer_id: int | None) -> QuerySet[User]:
    """The readers: the customer's admins, for the NOC's own webhooks NOC admins."""
    people = User.objects.filter(is_active=True).exclude(email="")
    if customer_id is None:
        return people.filter(noc_role=User.NocRole.NOC_ADMIN)
    return people.filter(memberships__customer=customer_id, memberships__role=Membership.Role.ADMIN)


def webhook_change_content(found: Mail) -> tuple[str, dict[str, Any]]:
    """The template and values of the mail."""
    return "webhook_changed", {**found.data, "link": absolute_url(reverse("web:webhooks"))}
