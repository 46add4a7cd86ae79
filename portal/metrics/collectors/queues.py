"""The number of messages that wait in Celery's queues.

A lost message does no harm, because the rows in PostgreSQL say what remains to do.
"""

import logging
from collections.abc import Iterator

import redis
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from portal.core.redis_url import broker_client, in_short
from portal.core.served_queues import queue_names

log = logging.getLogger(__name__)

_PATIENCE_S = 1.0
# In this hash, kombu keeps the messages that workers have received and not yet acknowledged.
_TAKEN = "unacked"


def families() -> Iterator[Metric]:
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
