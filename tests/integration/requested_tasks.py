"""The tasks that a test has requested: in its transaction, or already as messages in the queues."""

import base64
import json
from typing import Any

from django.db import connection

from portal.core.background_work import queue_names
from portal.core.redis_servers import broker_client
from portal.events.task_requests import TaskRequest, sender


def requested(task: str | None = None) -> list[tuple[str, list[Any]]]:
    """Return name and arguments of the requested tasks, oldest first; of one task if ``task`` is given."""
    found = [(each.task, list(each.args)) for each in _uncommitted()] + _sent()
    return [each for each in found if task in (None, each[0])]


def forget_requests() -> None:
    """Lose all messages, as Redis does without a disk."""
    connection.run_on_commit = [entry for entry in connection.run_on_commit if not _requests_of(entry[1])]
    assert sender.wait_until_sent(10)
    with broker_client(patience_s=5) as broker:
        broker.delete(*queue_names(), *broker.keys("longline:resent:*"))


def _uncommitted() -> list[TaskRequest]:
    return [each for _sids, function, _robust in connection.run_on_commit for each in _requests_of(function)]


def _requests_of(function: Any) -> list[TaskRequest]:
    if getattr(function, "func", None) != sender.request:
        return []
    return list(function.args[0])


def _sent() -> list[tuple[str, list[Any]]]:
    assert sender.wait_until_sent(10)
    with broker_client(patience_s=5) as broker:
        messages = [json.loads(raw) for name in queue_names() for raw in reversed(broker.lrange(name, 0, -1))]
    return [
        (message["headers"]["task"], json.loads(base64.b64decode(message["body"]))[0]) for message in messages
    ]
