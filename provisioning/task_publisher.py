"""Publishing task messages to the broker without ever hanging on it."""

from contextlib import suppress
from typing import Any

from celery import Celery
from kombu import Connection, Producer

# A message only hurries; one that nobody took in time is not worth keeping: the sweeper sends another.
EXPIRES_S = 60
# Celery's defaults would retry a dead broker for ever inside one call.
_BOUNDED = {"max_retries": 1, "interval_start": 0, "interval_step": 0.2, "connect_retries_timeout": 5}


class Publisher:
    """One connection to the broker, opened when first needed and again after a failure.

    ``publish`` raises what the transport raises (``kombu.exceptions.OperationalError``, ``OSError``) within
    the socket timeouts of ``CELERY_BROKER_TRANSPORT_OPTIONS``.
    """

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._connection: Connection | None = None
        self._producer: Producer | None = None

    def publish(self, task: str, args: list[Any]) -> None:
        """Hand one message to the broker."""
        try:
            self._app.send_task(
                task, args=args, producer=self._open(), expires=EXPIRES_S, retry=False, ignore_result=True
            )
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """Drop the connection; a broken one may complain while it closes."""
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
