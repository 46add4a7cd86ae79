"""Redis as Celery's broker, over which a worker loses no place for a task.

kombu 5.7 gives the place of a message free only after Redis took its acknowledgement. Where that failed
(Redis was frozen for longer than `socket_timeout`) the place stays taken until the connection is closed,
and a worker with all places taken asks for nothing any more. Here the place is freed all the same; Redis
delivers the message once more after `visibility_timeout`, which no task of ours minds.
"""

from typing import Any

from kombu.transport import redis
from kombu.transport.virtual.base import QoS as LocalPlaces


class PlaceFreeingQoS(redis.QoS):
    def ack(self, delivery_tag: str) -> None:
        try:
            super().ack(delivery_tag)
        except Exception:
            LocalPlaces.ack(self, delivery_tag)
            raise

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        try:
            super().reject(delivery_tag, requeue=requeue)
        except Exception:
            LocalPlaces.ack(self, delivery_tag)
            raise


class Channel(redis.Channel):
    QoS: Any = PlaceFreeingQoS


class Transport(redis.Transport):
    Channel: Any = Channel
