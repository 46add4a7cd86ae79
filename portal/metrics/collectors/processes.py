"""Figures of the portal's own work: outbox, queues, mails and webhooks, and its certificates."""

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta

import redis
from cryptography import x509
from django.conf import settings
from django.db.models import Count, Min, Model, Q
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from portal.core.redis_url import broker_client, in_short
from portal.core.served_queues import queue_names
from portal.events.models import Outbox
from portal.notifications.models import Delivery, Mail, Webhook


def age_s(oldest: datetime | None, *, now: datetime) -> float:
    """Return the age of the oldest row in seconds. It is 0 if there is no row.

    It is also 0 if the row's time is in the future, because the clock of the machine that wrote it is ahead.
    """
    return 0.0 if oldest is None else max(0.0, (now - oldest).total_seconds())


def outbox_families(now: datetime) -> Iterator[Metric]:
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


_RECENT = timedelta(days=1)
_CHANNELS: tuple[tuple[str, type[Model]], ...] = (("webhook", Delivery), ("mail", Mail))


def notification_families(now: datetime) -> Iterator[Metric]:
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


log = logging.getLogger(__name__)

_PATIENCE_S = 1.0
# In this hash, kombu keeps the messages that workers have received and not yet acknowledged.
_TAKEN = "unacked"


def queue_families() -> Iterator[Metric]:
    names = queue_names()
    try:
        *lengths, taken = _lengths(names)
    except redis.RedisError as error:
        log.warning("metrics: Redis does not answer: %s", in_short(error))
        yield _up(False)
        return
    yield _up(True)
    waiting = GaugeMetricFamily("longline_queue_length", "Messages that wait for a worker.", labels=["queue"])
    for name, length in zip(names, lengths, strict=True):
        waiting.add_metric([name], length)
    yield waiting
    yield GaugeMetricFamily(
        "longline_messages_taken", "Messages that workers of all queues are processing.", taken
    )


def _lengths(names: list[str]) -> list[int]:
    with broker_client(patience_s=_PATIENCE_S) as broker, broker.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.llen(name)
        pipe.hlen(_TAKEN)
        return [int(length) for length in pipe.execute()]


def _up(answers: bool) -> Metric:
    return GaugeMetricFamily("longline_broker_up", "1 if Redis answered.", answers)


def certificate_families() -> Iterator[Metric]:
    valid = GaugeMetricFamily(
        "longline_certificate_expiry_timestamp_seconds",
        "End of the CA's certificate (of two, the earlier end) and of the portal's for agents.",
        labels=["certificate"],
    )
    for name in ("ca", "portal"):
        path = settings.LONGLINE_PKI_DIR / f"{name}.pem"
        try:
            # During a rollover, the file contains two CAs. The earlier expiry counts.
            found = x509.load_pem_x509_certificates(path.read_bytes())
        except (OSError, ValueError) as error:
            log.warning("metrics: %s cannot be read: %s", path, error)
        else:
            valid.add_metric([name], min(each.not_valid_after_utc for each in found).timestamp())
    yield valid
