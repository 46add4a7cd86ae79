"""Alarms about the portal's own work: queues, mails, webhooks and NetBox."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count, Min

from portal.alarms.kinds import PORTAL, AlarmCondition, Kind
from portal.core.background_work import unserved_queues
from portal.netbox_sync.netbox_status import lines_in_error, netbox_status
from portal.notifications.models import Mail, Webhook

# After this number of attempts, a mail has waited for twenty minutes. A server that uses greylisting accepts
# the mail by then.
TRIES_OF_A_MAIL = 4


def queues_without_worker(now: datetime) -> Iterator[AlarmCondition]:
    """Yield queues that contain messages but have no worker. A new release may have added such a queue."""
    for queue, messages in unserved_queues().items():
        yield AlarmCondition(
            kind=Kind.QUEUE_UNSERVED, object=f"queue:{queue}", name=queue, facts={"messages": messages}
        )


def webhooks(now: datetime) -> Iterator[AlarmCondition]:
    """Yield webhooks that the portal disabled. Webhooks that a user disabled cause no alarm."""
    disabled = Webhook.objects.filter(disabled_because__in=(Webhook.Disabled.GONE, Webhook.Disabled.FAILING))
    for webhook in disabled.select_related("customer").order_by("pk"):
        yield AlarmCondition(
            kind=Kind.WEBHOOK,
            object=f"webhook:{webhook.pk}",
            name=(webhook.description or webhook.url)[:250],
            since=webhook.disabled_at,
            facts={"customer": str(webhook.customer or ""), "because": webhook.disabled_because},
        )


def mails(now: datetime) -> Iterator[AlarmCondition]:
    waiting = Mail.objects.filter(next_try_at__isnull=False, tries__gte=TRIES_OF_A_MAIL)
    first = waiting.select_related("user").order_by("created_at").first()
    if first is not None:
        totals = waiting.aggregate(mails=Count("pk"), since=Min("created_at"))
        facts = {
            "mails": totals["mails"],
            "reader": str(first.user),
            # The previous release reads "first" and does not know "reader".
            "first": f"{first.kind} → {first.user}",
            "error": first.error,
        }
        yield AlarmCondition(kind=Kind.MAILS, object=PORTAL, name=PORTAL, since=totals["since"], facts=facts)


def netbox(now: datetime) -> Iterator[AlarmCondition]:
    """Yield an alarm if NetBox cannot be read, and an alarm if lines cannot be written to NetBox.

    Orders do not depend on NetBox, but without it the inventory becomes outdated.
    """
    status = netbox_status(now)
    if status is None:
        return
    if status.error or status.stale:
        since = status.state.failing_since or status.state.imported_at
        facts = {"error": status.state.error}
        yield AlarmCondition(kind=Kind.NETBOX, object=PORTAL, name="NetBox", since=since, facts=facts)
    first = lines_in_error().first()
    if first is not None:
        facts = {"lines": status.in_error, "first": str(first.vll), "error": first.error}
        yield AlarmCondition(kind=Kind.NETBOX_LINES, object=PORTAL, name="NetBox", facts=facts)
