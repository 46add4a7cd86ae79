"""Requests for tasks that were committed and have not been sent to Celery yet."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count, Min
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from portal.events.models import Outbox
from portal.metrics.oldest_age import age_s


def families(now: datetime) -> Iterator[Metric]:
    waiting = Outbox.objects.filter(published_at__isnull=True).aggregate(
        rows=Count("pk"), oldest=Min("created_at")
    )
    lag = age_s(waiting["oldest"], now=now)
    yield GaugeMetricFamily(
        "longline_outbox_rows", "Messages that the relay has not sent to Celery yet.", waiting["rows"]
    )
    yield GaugeMetricFamily(
        "longline_outbox_lag_seconds", "Age of the oldest message in the outbox; 0 if it is empty.", lag
    )
