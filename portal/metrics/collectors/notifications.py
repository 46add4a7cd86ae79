"""Waiting and failed mails and webhook deliveries.

Their rows are deleted after some time, so all of these metrics are gauges and not counters.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Count, Min, Model, Q
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from portal.metrics.oldest_age import age_s
from portal.notifications.models import Delivery, Mail, Webhook

_RECENT = timedelta(days=1)
_CHANNELS: tuple[tuple[str, type[Model]], ...] = (("webhook", Delivery), ("mail", Mail))


def families(now: datetime) -> Iterator[Metric]:
    pending = _by_channel(
        "deliveries_pending", "Webhook messages and mails that wait for their first or next attempt."
    )
    oldest = _by_channel(
        "deliveries_oldest_age_seconds", "Age of the oldest waiting webhook message or mail; 0 if none waits."
    )
    failed = _by_channel(
        "deliveries_failed_lately", "Webhook messages and mails of the last day that failed finally."
    )
    for name, model in _CHANNELS:
        waiting = model._default_manager.filter(next_try_at__isnull=False).aggregate(
            number=Count("pk"), since=Min("created_at")
        )
        pending.add_metric([name], waiting["number"])
        oldest.add_metric([name], age_s(waiting["since"], now=now))
        failed.add_metric(
            [name], model._default_manager.filter(created_at__gte=now - _RECENT, state="failed").count()
        )
    yield from (pending, oldest, failed)
    webhooks = Webhook.objects.aggregate(
        enabled=Count("pk", filter=Q(disabled_at__isnull=True)),
        disabled=Count("pk", filter=Q(disabled_at__isnull=False)),
    )
    family = GaugeMetricFamily("longline_webhooks", "Webhooks: enabled or disabled.", labels=["state"])
    for state, number in webhooks.items():
        family.add_metric([state], number)
    yield family


def _by_channel(name: str, help_text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"longline_{name}", help_text, labels=["channel"])
