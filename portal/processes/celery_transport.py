"""Redis as Celery's broker, over which a worker loses no place for a task.

kombu 5.7 gives the place of a message free only after Redis took its acknowledgement. Where that failed
(Redis was frozen for longer than `socket_timeout`) the place stays taken until the connection is closed,
and a worker with all places taken asks for nothing any more. Here the place is freed all the same; Redis
delivers the message once more after `visibility_timeout`, which no task of ours minds.

Nor does a worker end when Redis goes away while it has a message: to give it back, kombu 5.7 then asks the
connection that it has just closed for its address. There is nobody to give it back to; see above. And a
task that ends after its channel was closed has nobody to tell: kombu 5.7 asks the connection that the channel
no longer has, which ends the worker too.
"""

import logging
from typing import Any

from kombu.transport import redis
from kombu.transport.virtual.base import QoS as LocalPlaces

log = logging.getLogger(__name__)


class PlaceFreeingQoS(redis.QoS):
    def ack(self, delivery_tag: str) -> None:
        if self._is_closed():
            return
        try:
            super().ack(delivery_tag)
        except Exception:
            LocalPlaces.ack(self, delivery_tag)
            raise

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        if self._is_closed():
            return
        try:
            super().reject(delivery_tag, requeue=requeue)
        except Exception:
            LocalPlaces.ack(self, delivery_tag)
            raise

    def _is_closed(self) -> bool:
        """Whether the channel was closed, and what was at work on it given back or left to come again."""
        return self.channel.connection is None

    def restore_unacked_once(self, stderr: Any = None) -> None:
        try:
            super().restore_unacked_once(stderr)
        except AttributeError:
            if self.channel.connection.client is not None:
                raise
            at_work: dict[str, Any] = self._delivered or {}
            log.warning("%d messages come again: the broker went away", len(at_work))
            at_work.clear()


class Channel(redis.Channel):
    QoS: Any = PlaceFreeingQoS


class Transport(redis.Transport):
    Channel: Any = Channel


class SentinelChannel(redis.SentinelChannel):
    QoS: Any = PlaceFreeingQoS


class SentinelTransport(redis.SentinelTransport):
    """The same where Sentinels say which Redis is the master."""

    Channel: Any = SentinelChannel
