"""Publication of task messages to the broker, without ever hanging."""

from contextlib import suppress
from typing import Any

from celery import Celery
from kombu import Connection, Producer

# A message only makes work start sooner. If no worker takes the message within this time, it is dropped, and
# the sweeper sends another.
EXPIRES_S = 60
# By default, one call of Celery would retry indefinitely while the broker is down.
_BOUNDED = {"max_retries": 1, "interval_start": 0, "interval_step": 0.2, "connect_retries_timeout": 5}


class Publisher:
    """One connection to the broker, opened when first needed and again after a failure.

    ``publish`` raises the transport's errors (``kombu.exceptions.OperationalError``, ``OSError``) within the
    socket timeouts of ``CELERY_BROKER_TRANSPORT_OPTIONS``.
    """

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._connection: Connection | None = None
        self._producer: Producer | None = None

    def publish(self, task: str, args: list[Any]) -> None:
        """Send one message to the broker."""
        try:
            self._app.send_task(
                task, args=args, producer=self._open(), expires=EXPIRES_S, retry=False, ignore_result=True
            )
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; errors of a broken connection are ignored."""
        connection, self._connection, self._producer = self._connection, None, None
        if connection is not None:
            with suppress(Exception):
                connection.release()

    def _open(self) -> Producer:
        if self._producer is None:
            self._connection = self._app.connection_for_write()
            self._connection.transport_options = {**(self._connection.transport_options or {}), **_BOUNDED}
            self._producer = self._app.amqp.Producer(self._connection)
        return self._producer
