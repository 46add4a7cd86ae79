"""Redis as Celery's broker, without losing a worker's slots for tasks.

kombu 5.7 frees the slot of a message only after Redis has accepted the acknowledgement. If the
acknowledgement fails, the slot stays occupied until the connection is closed. This happens, for example, if
Redis is frozen for longer than `socket_timeout`. A worker with all slots occupied requests no more messages.
This transport frees the slot in any case. Redis then delivers the message again after `visibility_timeout`.
This is safe, because every task may run twice.

This transport also prevents two crashes of a worker:

* Redis disconnects while the worker has a message. kombu 5.7 wants to return the message to Redis, and for
  this uses an address in the connection that it has just closed. This transport does not return the message;
  Redis delivers it again.
* A task ends after its channel was closed. kombu 5.7 then uses a connection that the channel no longer has.
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
        """Return whether the channel is closed. Redis delivers a closed channel's messages again."""
        return self.channel.connection is None

    def restore_unacked_once(self, stderr: Any = None) -> None:
        try:
            super().restore_unacked_once(stderr)
        except AttributeError:
            if self.channel.connection.client is not None:
                raise
            at_work: dict[str, Any] = self._delivered or {}
            log.warning("the broker disconnected: %d messages are delivered again", len(at_work))
            at_work.clear()


class Channel(redis.Channel):
    QoS: Any = PlaceFreeingQoS


class Transport(redis.Transport):
    Channel: Any = Channel


class SentinelChannel(redis.SentinelChannel):
    QoS: Any = PlaceFreeingQoS


class SentinelTransport(redis.SentinelTransport):
    """The same transport for Redis with Sentinels, which name the current master."""

    Channel: Any = SentinelChannel
