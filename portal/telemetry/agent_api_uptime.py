"""The times when the agent API was able to receive reports. At other times, a missing report is no sign of a
fault.

A process of the agent API counts as listening if one of its threads is free from time to time. If all threads
are permanently busy, reports wait longer and longer. During this time, a missing report does not make a
router silent.
"""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import Error, close_old_connections

from portal.core import clock
from portal.telemetry.models import AgentApiUptime
from portal.telemetry.time_spans import Span, merged

log = logging.getLogger(__name__)

_BEAT = timedelta(seconds=10)
# The number of times per heartbeat that a process checks for a free thread.
_CHECKS = 20
# A gap of up to this length, such as a restart of the server, does not interrupt the uptime, because agents
# send lost reports again.
_RESTART = timedelta(seconds=30)
_lock = threading.Lock()
_answering = 0


def uptime_note(*, now: datetime) -> None:
    """Record that a process of the agent API works and reaches the database."""
    going_on = AgentApiUptime.objects.filter(last_recorded_at__gte=now - _RESTART)
    if not going_on.update(last_recorded_at=now):
        AgentApiUptime.objects.create(began_at=now, last_recorded_at=now)


def listened(since: datetime, until: datetime) -> list[Span]:
    """Return the parts of the time from ``since`` to ``until`` in which the agent API was able to receive
    reports.
    """
    rows = AgentApiUptime.objects.filter(last_recorded_at__gt=since - _BEAT, began_at__lt=until)
    return merged(
        (max(began_at, since), min(last_recorded_at + _BEAT, until))
        for began_at, last_recorded_at in rows.values_list("began_at", "last_recorded_at")
    )


@contextmanager
def answering() -> Iterator[None]:
    """Count a thread of this process as busy while it handles a request."""
    global _answering
    with _lock:
        _answering += 1
    try:
        yield
    finally:
        with _lock:
            _answering -= 1


def note_regularly(*, threads: int) -> None:
    """Record the uptime in a background thread until this process ends.

    ``threads``: the number of threads that handle requests in this process.
    """
    threading.Thread(target=_note_repeatedly, args=(threads,), name="agent-api-uptime", daemon=True).start()


def _note_repeatedly(threads: int) -> None:
    while True:
        try:
            uptime_note(now=clock.now())
        except Error as error:
            log.warning("cannot record the uptime of the agent API: %s", error)
        close_old_connections()
        while not is_one_free(threads):
            log.warning(
                "all %d threads are permanently busy: reports wait, and no router counts as silent", threads
            )


def is_one_free(threads: int) -> bool:
    """Check repeatedly for one heartbeat. Return whether a thread was free at one check or more."""
    free = False
    for _ in range(_CHECKS):
        time.sleep(_BEAT.total_seconds() / _CHECKS)
        free |= _answering < threads
    return free
