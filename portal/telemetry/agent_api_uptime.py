"""The times when the portal listened to its routers: only then does their silence say anything.

A process of the agent API listens while one of its threads is free now and then. Once all are busy all the
time, reports wait longer and longer: a router that is not heard then has not fallen silent.
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
# In each beat, whether a thread is free.
_LOOKS = 20
# A server that is restarted misses nothing: agents try again all the time.
_RESTART = timedelta(seconds=30)
_lock = threading.Lock()
_answering = 0


def uptime_note(*, now: datetime) -> None:
    """A process of the agent API works, and reaches the database."""
    going_on = AgentApiUptime.objects.filter(seen_at__gte=now - _RESTART)
    if not going_on.update(seen_at=now):
        AgentApiUptime.objects.create(began_at=now, seen_at=now)


def listened(since: datetime, until: datetime) -> list[Span]:
    """In which parts of that time the agent API took reports."""
    rows = AgentApiUptime.objects.filter(seen_at__gt=since - _BEAT, began_at__lt=until)
    return merged(
        (max(began_at, since), min(seen_at + _BEAT, until))
        for began_at, seen_at in rows.values_list("began_at", "seen_at")
    )


@contextmanager
def answering() -> Iterator[None]:
    """While a thread of this process answers a request."""
    global _answering
    with _lock:
        _answering += 1
    try:
        yield
    finally:
        with _lock:
            _answering -= 1


def note_regularly(*, threads: int) -> None:
    """Note it in a thread of this process, for as long as that lives; it answers with so many threads."""
    threading.Thread(target=_note_for_ever, args=(threads,), name="agent-api-uptime", daemon=True).start()


def _note_for_ever(threads: int) -> None:
    while True:
        try:
            uptime_note(now=clock.now())
        except Error as error:
            log.warning("the agent API's uptime is not noted: %s", error)
        close_old_connections()
        while not is_one_free(threads):
            log.warning("all %d threads are busy all the time: reports wait, and no silence begins", threads)


def is_one_free(threads: int) -> bool:
    """Whether one of them is at some moment of the next beat; afterwards."""
    free = False
    for _ in range(_LOOKS):
        time.sleep(_BEAT.total_seconds() / _LOOKS)
        free |= _answering < threads
    return free
