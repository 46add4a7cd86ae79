"""Background work: loops over rows, pauses after repeated failures, and the health of its processes.

A process without a port touches a file, and a health check reads the age of the file. Each worker records its
queues in Redis while it runs. Celery can also report these queues, but it has to query all workers and wait
for their responses. The portal does this only for queues without a record, for example because their workers
run an older release.
"""

import logging
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import redis
from celery import current_app
from django.conf import settings
from django.db import Error, connection

from portal.core.redis_servers import broker_client, in_short

log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")


def each_row(rows: Iterable[T], do: Callable[[T], R], *, what: str) -> list[R]:
    """Return the results of ``do(row)`` for all rows.

    If a row fails, the loop continues. After the last row, the function raises all failures as one
    ExceptionGroup. A lost database connection ends the loop, because all further rows would fail too. ``do``
    should use its own transaction, so that a failed row leaves nothing behind. ``what``: the name of the
    work, for the log and the error.
    """
    done: list[R] = []
    failures: list[Exception] = []
    for row in rows:
        try:
            done.append(do(row))
        except Exception as failure:
            log.exception("%s failed", what, extra={"row": str(row)})
            failures.append(failure)
            if isinstance(failure, Error) and not connection.is_usable():
                break
    if failures:
        raise ExceptionGroup(f"{what} failed for {len(failures)} of {len(done) + len(failures)}", failures)
    return done


def backoff(failures: int, *, first: timedelta, longest: timedelta) -> timedelta:
    """Return the pause after a failure: ``first``, doubled for each earlier failure, but at most ``longest``.

    ``failures``: the number of earlier failures, 0 or more.
    """
    enough: int = (longest // first).bit_length()
    return min(first * (1 << min(failures, enough)), longest)


def beat(*_: Any, **__: Any) -> None:
    """Touch the file ``LONGLINE_ALIVE_FILE``, if the setting is not empty.

    The arguments are ignored, so that the function can receive Celery's signals.
    """
    if settings.LONGLINE_ALIVE_FILE:
        Path(settings.LONGLINE_ALIVE_FILE).touch()


# The lifetime of a record, in seconds. A worker that has not renewed its record for this time has stopped. A
# restart takes less time.
NOTED_FOR_S = 60
# If Redis has been running for a shorter time (s), it may have lost records that are not yet renewed.
KNOWN_AFTER_S = NOTED_FOR_S
_NOTE_EVERY_S = 10.0
_PATIENCE_S = 1.0
# The time (s) that the portal waits for workers' responses.
_WORKERS_RESPOND_IN_S = 1.0
_KEY = "longline:served:{queue}"


def queue_names() -> list[str]:
    """Return every queue that a task is routed to."""
    routed = {route["queue"] for route in settings.CELERY_TASK_ROUTES.values()}
    return sorted(routed | {settings.CELERY_TASK_DEFAULT_QUEUE})


def served_note(queues: Iterable[str]) -> None:
    """Record that a worker consumes these queues. Raises redis.RedisError."""
    with broker_client(patience_s=_PATIENCE_S) as broker, broker.pipeline(transaction=False) as pipe:
        for queue in queues:
            pipe.set(_KEY.format(queue=queue), 1, ex=NOTED_FOR_S)
        pipe.execute()


def unserved_queues() -> dict[str, int]:
    """Return the queues with waiting messages that no worker consumes, and the number of messages in each.

    If a queue with messages has no record, the workers are queried, which takes a second. Queues that a
    worker then reports are recorded. Return nothing if Redis has just started and may have lost the records.
    Raises redis.RedisError, or kombu's OperationalError.
    """
    names = queue_names()
    with broker_client(patience_s=_PATIENCE_S) as broker, broker.pipeline(transaction=False) as pipe:
        pipe.info("server")
        for name in names:
            pipe.llen(name)
            pipe.exists(_KEY.format(queue=name))
        server, *facts = pipe.execute()
    if server["uptime_in_seconds"] < KNOWN_AFTER_S:
        return {}
    found = zip(names, facts[::2], facts[1::2], strict=True)
    unrecorded = {name: int(waiting) for name, waiting, recorded in found if waiting and not recorded}
    if not unrecorded:
        return {}
    consumed = _consumed_queues()
    served_note(unrecorded.keys() & consumed)
    return {name: waiting for name, waiting in unrecorded.items() if name not in consumed}


def _consumed_queues() -> set[str]:
    """Return the queues that the running workers report. Wait _WORKERS_RESPOND_IN_S for their responses."""
    responses = current_app.control.inspect(timeout=_WORKERS_RESPOND_IN_S).active_queues() or {}
    return {queue["name"] for queues in responses.values() for queue in queues}


class QueueNotes:
    """Records the queues of a Celery worker. It is a receiver for the worker's heartbeat signal.

    It skips most heartbeats, and records the queues every _NOTE_EVERY_S seconds.
    """

    def __init__(self) -> None:
        self._due = 0.0

    def __call__(self, *, sender: Any, **_: Any) -> None:
        """Record the queues. ``sender`` is Celery's Heart, whose event dispatcher knows the application."""
        if monotonic() < self._due:
            return
        self._due = monotonic() + _NOTE_EVERY_S
        try:
            served_note(sender.eventer.app.amqp.queues.consume_from)
        except redis.RedisError as error:
            log.warning("cannot record the queues of this worker: %s", in_short(error))
