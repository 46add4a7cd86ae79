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

_LATELY = timedelta(days=1)
_CHANNELS: tuple[tuple[str, type[Model]], ...] = (("webhook", Delivery), ("mail", Mail))


def families(now: datetime) -> Iterator[Metric]:
    pending = _by_channel("deliveries_pending", "What is to be sent, or sent again.")
    oldest = _by_channel("deliveries_oldest_age_seconds", "Age of the oldest of these, 0 without any.")
    failed = _by_channel("deliveries_failed_lately", "Of the last day, given up.")
    for name, model in _CHANNELS:
        waiting = model._default_manager.filter(next_try_at__isnull=False).aggregate(
            number=Count("pk"), since=Min("created_at")
        )
        pending.add_metric([name], waiting["number"])
        oldest.add_metric([name], age_s(waiting["since"], now=now))
        failed.add_metric(
            [name], model._default_manager.filter(created_at__gte=now - _LATELY, state="failed").count()
        )
    yield from (pending, oldest, failed)
    webhooks = Webhook.objects.aggregate(
        enabled=Count("pk", filter=Q(disabled_at__isnull=True)),
        disabled=Count("pk", filter=Q(disabled_at__isnull=False)),
    )
    family = GaugeMetricFamily(
        "longline_webhooks", "Webhooks, by whether anything is sent to them.", labels=["state"]
    )
    for state, number in webhooks.items():
        family.add_metric([state], number)
    yield family


def _by_channel(name: str, help_text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"longline_{name}", help_text, labels=["channel"])
