"""Requests for Celery tasks. They are sent after the caller's transaction, and no caller waits for Redis.

Rows record all work. A message only makes work start sooner: if a message is lost, a sweep finds the row and
sends another message.
"""

import atexit
import json
import logging
import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from threading import Condition, Thread
from time import sleep
from typing import Any

import redis
from celery import Celery, current_app
from celery.signals import task_postrun
from celery.states import SUCCESS
from django.db import transaction
from kombu import Connection, Producer

from portal.core.redis_servers import broker_pool

log = logging.getLogger(__name__)

# If no worker takes a message within this time, it is dropped, and a sweep sends another.
EXPIRES_S = 60
# A message of a sweep may wait for a worker this long. After this time, it counts as lost. If each sweep sent
# it again, overloaded workers would process nothing but repeated messages.
RESENT_IS_LOST_AFTER_S = 30
# Requests above this number are dropped; sweeps send them later.
MOST_PENDING = 10_000
# A process that has sent all its requests waits this long before it sends the next one. Equal requests merge
# meanwhile, so many orders on one router need few messages. A first request waits for nothing.
MERGED_FOR_S = 0.05
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
# By default, one call of Celery would retry indefinitely while the broker is down.
_BOUNDED = {"max_retries": 1, "interval_start": 0, "interval_step": 0.2, "connect_retries_timeout": 5}
_PATIENCE_S = 1.0
# A process that ends waits this long for its last messages.
EXIT_WAIT_S = 2.0


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """A task's name and its arguments, such as ids."""

    task: str
    args: tuple[int | str, ...]

    @property
    def mark(self) -> str:
        """The key in Redis that exists while a message of a sweep waits for a worker."""
        return f"longline:resent:{self.task}:{json.dumps(self.args)}"


class TaskSender:
    """Sends requests from a thread of this process; the thread starts with the first request.

    While Redis does not respond, the requests stay in memory. Equal requests are sent once: a task reads the
    newest rows. A process that ends loses its requests, and the sweeps send them.
    """

    def __init__(self, app: Celery) -> None:
        self._app = app
        self.reset()

    def reset(self) -> None:
        """Forget the requests and the connection of the parent process after a fork."""
        self._changed = Condition()
        self._pending: OrderedDict[TaskRequest, None] = OrderedDict()
        self._sending: TaskRequest | None = None
        self._thread: Thread | None = None
        self._connection: Connection | None = None
        self._producer: Producer | None = None

    def request(self, requests: Iterable[TaskRequest]) -> None:
        """Send these requests soon. Return immediately."""
        with self._changed:
            for each in requests:
                if len(self._pending) < MOST_PENDING:
                    self._pending[each] = None
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._run, name="task sender", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def wait_until_sent(self, timeout_s: float) -> bool:
        """Wait until all requests are sent; return False if they are not sent in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._pending and not self._sending, timeout_s)

    def publish(self, request: TaskRequest) -> None:
        """Send one message to the broker. Raises the transport's errors within its socket timeouts."""
        try:
            self._app.send_task(
                request.task,
                args=list(request.args),
                producer=self._open(),
                expires=EXPIRES_S,
                retry=False,
                ignore_result=True,
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

    def _run(self) -> None:
        pause = FIRST_PAUSE_S
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending)
                # Remove the request before it is sent. An equal request that arrives meanwhile is about newer
                # rows and needs its own message.
                self._sending, _ = self._pending.popitem(last=False)
            try:
                self.publish(self._sending)
            except Exception as error:
                # Also after errors that nobody foresaw, this thread has to go on.
                log.warning("tasks: %s: %s; retry in %.1f s", type(error).__name__, error, pause)
                with self._changed:
                    self._pending[self._sending] = None
                    self._pending.move_to_end(self._sending, last=False)
                    self._sending = None
                sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE_S)
            else:
                pause = FIRST_PAUSE_S
                with self._changed:
                    self._sending = None
                    self._changed.notify_all()
                    all_are_sent = not self._pending
                if all_are_sent:
                    sleep(MERGED_FOR_S)

    def _open(self) -> Producer:
        if self._producer is None:
            self._connection = self._app.connection_for_write()
            self._connection.transport_options = {**(self._connection.transport_options or {}), **_BOUNDED}
            self._producer = self._app.amqp.Producer(self._connection)
        return self._producer


sender = TaskSender(current_app)
os.register_at_fork(after_in_child=sender.reset)
# A command may end right after its transaction.
atexit.register(sender.wait_until_sent, EXIT_WAIT_S)


def send_task(task: str, *args: int | str) -> None:
    """Request that Celery runs ``task(*args)`` after this transaction has committed."""
    send_tasks(task, [args])


def send_tasks(task: str, calls: Iterable[Sequence[int | str]]) -> None:
    """Request ``task(*args)`` for each ``args`` in ``calls``."""
    if requests := [TaskRequest(task, tuple(args)) for args in calls]:
        transaction.on_commit(partial(sender.request, requests), robust=True)


def resend_tasks(task: str, calls: Iterable[Sequence[int | str]]) -> list[tuple[int | str, ...]]:
    """Request ``task(*args)`` again, for sweeps; return the arguments of the requested tasks.

    Tasks are left out if an earlier message of a sweep may still wait for a worker. The marks of these
    messages are in Redis: if Redis loses its messages, it loses the marks too. First messages have no mark,
    because it would cost each order another round trip.
    """
    requests = [TaskRequest(task, tuple(args)) for args in calls]
    if not requests:
        return []
    with _broker().pipeline(transaction=False) as pipe:
        for each in requests:
            pipe.set(each.mark, 1, nx=True, ex=RESENT_IS_LOST_AFTER_S)
        lost = [each for each, is_new in zip(requests, pipe.execute(), strict=True) if is_new]
    send_tasks(task, [each.args for each in lost])
    return [each.args for each in lost]


@task_postrun.connect(dispatch_uid="longline_resent")
def _mark_remove(*, task: Any, args: Sequence[int | str], state: str | None, **_: Any) -> None:
    """Remove the mark of a message after its task, so that a sweep may send the next message.

    After an error the mark stays, and the sweep waits RESENT_IS_LOST_AFTER_S.
    """
    if not args or state != SUCCESS:
        return
    with suppress(redis.RedisError):
        _broker().delete(TaskRequest(task.name, tuple(args)).mark)


@cache
def _broker() -> redis.Redis:
    """Return this process's client for marks. Its pool opens new connections after a fork."""
    return redis.Redis(connection_pool=broker_pool(patience_s=_PATIENCE_S))
