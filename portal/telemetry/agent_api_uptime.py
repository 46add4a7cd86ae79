"""The times when the portal listened to its routers: only then does their silence say anything."""

import logging
import threading
import time
from datetime import datetime, timedelta

from django.db import Error, close_old_connections

from portal.core import clock
from portal.telemetry.models import AgentApiUptime
from portal.telemetry.time_spans import Span, merged

log = logging.getLogger(__name__)

_BEAT = timedelta(seconds=10)
# A server that is restarted misses nothing: agents try again all the time.
_RESTART = timedelta(seconds=30)


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


def note_regularly() -> None:
    """Note it in a thread of this process, for as long as that lives."""
    threading.Thread(target=_note_for_ever, name="agent-api-uptime", daemon=True).start()


def _note_for_ever() -> None:
    while True:
        try:
            uptime_note(now=clock.now())
        except Error as error:
            log.warning("the agent API's uptime is not noted: %s", error)
        close_old_connections()
        time.sleep(_BEAT.total_seconds())
