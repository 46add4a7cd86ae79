"""Silences of routers: times without reports while the portal listened.

A silence lasts from a router's last report to its next report. The portal stores a silence when it has
listened for longer than FRESH without a report. portal.telemetry.line_status_in_silence judges silences, with
the pure functions at the end of this module.

A process of the agent API counts as listening if one of its threads is free from time to time. If all threads
are permanently busy, reports wait longer and longer. During this time, a missing report does not make a
router silent.
"""

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import Error, close_old_connections, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Coalesce, Greatest

from portal.core import clock
from portal.core.background_work import each_row
from portal.core.clock import EPOCH
from portal.events.announcements import announce
from portal.inventory.models import FRESH, ObservedRouter, Router, RouterSilence
from portal.telemetry.models import AgentApiUptime, UnjudgedFiveMinutes
from portal.telemetry.time_spans import Span, length, merged, within, without
from portal.vll.states import OperStatus

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
    """Return when, between ``since`` and ``until``, the agent API was able to receive reports."""
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
    """Record the uptime in a background thread. ``threads``: the number that handle requests here."""
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


SILENT, REPORTING = "router.silent", "router.reporting"


def silences_begin(*, now: datetime) -> None:
    """Store a silence for each router that has stopped reporting. Each router has its own transaction."""
    reported_before = ObservedRouter.objects.filter(reported_at__lt=now - FRESH).exclude(router__agent_url="")
    known = RouterSilence.objects.filter(until__isnull=True).values("router")
    fallen_silent = (
        reported_before.exclude(router__in=known).order_by("router").values_list("router", "reported_at")
    )
    each_row(fallen_silent, lambda row: _begin(*row, now), what="the begin of a router's silence")


def silences_due(*, now: datetime) -> list[int]:
    """Return the ids of the silences to judge, least recently judged first.

    A silence is due in each of these cases:

    * it is to be judged again from its beginning;
    * the roll-up has counted a 5-minute bucket of it since the last judgement;
    * it has ended, and its end is not yet judged;
    * it continues, and has lasted long enough without evidence to count as down.
    """
    last_sign_of_life = Greatest("since", Coalesce("forwarded_at", "since"))
    silent_for = timedelta(seconds=settings.LONGLINE_SILENCE_IS_DOWN_S)
    going_on = Q(until__isnull=True, counts_as_down=False, last_sign_of_life__lt=now - silent_for)
    counted = Exists(UnjudgedFiveMinutes.objects.filter(silence=OuterRef("pk")))
    due = RouterSilence.objects.annotate(last_sign_of_life=last_sign_of_life).filter(
        Q(judge_again=True) | going_on | Q(judged_until__lt=F("until")) | counted
    )
    return list(due.order_by(F("judged_until").asc(nulls_first=True), "pk").values_list("pk", flat=True))


def silence_end(*, router: Router, last_report: datetime, now: datetime) -> bool:
    """End the silence of a router that reports again. Return whether the silence counted as down until now.

    The caller must have locked the router's ObservedRouter, and must not have locked any of its lines.
    """
    silence = (
        RouterSilence.objects.select_for_update(no_key=True).filter(router=router, until__isnull=True).first()
    )
    if silence is not None:
        RouterSilence.objects.filter(pk=silence.pk).update(
            until=now, counts_as_down=False, judge_again=silence.judge_again or silence.judged_until is None
        )
        announce(REPORTING, now=now, router_id=router.pk)
        return silence.counts_as_down
    if length(listened(last_report, now)) > FRESH:
        # The silence was not noticed, although the agent API was running.
        RouterSilence.objects.create(router=router, since=last_report, until=now, judge_again=True)
    return False


@transaction.atomic
def _begin(router_id: int, last_report: datetime, now: datetime) -> None:
    # The lock makes a concurrent report wait for this transaction. The report then ends the silence.
    still = (
        ObservedRouter.objects.select_for_update().filter(router=router_id, reported_at=last_report).exists()
    )
    if still and length(listened(last_report, now)) > FRESH:
        _, is_new = RouterSilence.objects.get_or_create(
            router_id=router_id, until=None, defaults={"since": last_report}
        )
        if is_new:
            announce(SILENT, now=last_report, router_id=router_id)


def silences_forget(*, before: datetime) -> int:
    """Delete silences that ended before that time, when none is judged again. Return their number."""
    return RouterSilence.objects.filter(until__lt=before).delete()[0]


BUCKET = timedelta(minutes=5)
# A sample may begin or end this long before or after its 5-minute bucket. Agents' clocks differ slightly.
_BLUR = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Interval:
    """A row of OperInterval by value. ``ended`` is None while the line has that status."""

    status: str
    began: datetime
    ended: datetime | None
    judged: bool = False


Verdict = tuple[datetime, datetime, OperStatus]


def spoken_for(silence: Span, five_minutes: Iterable[Span], *, over: bool) -> list[Span]:
    """Return the parts of a silence for which there is evidence.

    ``five_minutes``: spans of one or more consecutive 5-minute buckets with evidence. Only buckets that lie
    completely in the silence count. Evidence in the first or the last of these buckets also covers the time
    up to the edge of the silence. While the silence continues (``over`` is False), the last bucket need not
    be complete.
    """
    since, until = silence
    first = _rounded_up(since + _BLUR)
    last = _rounded_down(until - _BLUR) if over else _rounded_down(until) + BUCKET
    return merged(
        (since if begin == first else begin, until if over and end == last else min(end, until))
        for begin, end in within(five_minutes, [(first, last)])
    )


def last_five_minutes(silence: Span) -> datetime:
    """Return the start of the last 5-minute bucket that lies completely in a silence that is over."""
    return _rounded_down(silence[1] - _BLUR) - BUCKET


def down_in(
    silence: Span, spoken: Sequence[Span], *, listened: Sequence[Span], longest: timedelta
) -> list[Span]:
    """Return the parts of the silence in which the router counts as down.

    The router counts as down in a part without evidence if the portal listened for longer than ``longest`` in
    this part. The result only contains time in which the portal listened.
    """
    found = (within([quiet], listened) for quiet in without(silence, spoken))
    return merged(span for silent in found if length(silent) > longest for span in silent)


def verdicts_on(silence: Span, *, forwarded: Sequence[Span], down: Sequence[Span]) -> list[Verdict]:
    """Return a line's status in each part of the silence.

    The status is up while the line forwarded, down while one of its routers counts as down, else unknown.
    """
    parts: list[Verdict] = [(*span, OperStatus.UP) for span in within([silence], forwarded)]
    for quiet in without(silence, forwarded):
        parts += [(*span, OperStatus.DOWN) for span in within([quiet], down)]
        parts += [(*span, OperStatus.UNKNOWN) for span in without(quiet, down)]
    return sorted(parts)


def rewritten(intervals: Sequence[Interval], verdicts: Sequence[Verdict]) -> list[Interval]:
    """Return a line's intervals, rewritten with the verdicts on a silence.

    Observed down time does not change. Observed up time can become down time, but not unknown time. Such up
    time exists at the start of a silence, until the portal noticed the missing report.
    """
    pieces: list[Interval] = []
    for interval in intervals:
        if interval.status == OperStatus.DOWN and not interval.judged:
            pieces.append(interval)
            continue
        begin = interval.began
        for since, until, status in verdicts:
            if until <= begin or (interval.ended is not None and since >= interval.ended):
                continue
            since = max(since, begin)
            until = until if interval.ended is None else min(until, interval.ended)
            pieces.append(replace(interval, began=begin, ended=since))
            pieces.append(_judged(interval, since, until, status))
            begin = until
        pieces.append(replace(interval, began=begin))
    return _joined(pieces)


def _judged(interval: Interval, since: datetime, until: datetime, status: OperStatus) -> Interval:
    if status == OperStatus.UNKNOWN and interval.status == OperStatus.UP and not interval.judged:
        return replace(interval, began=since, ended=until)
    return Interval(status, since, until, judged=status != OperStatus.UNKNOWN)


def _joined(pieces: Sequence[Interval]) -> list[Interval]:
    found: list[Interval] = []
    for piece in pieces:
        if piece.ended is not None and piece.ended <= piece.began:
            continue
        last = found[-1] if found else None
        if last and (last.status, last.judged, last.ended) == (piece.status, piece.judged, piece.began):
            found[-1] = replace(last, ended=piece.ended)
        else:
            found.append(piece)
    return found


def _rounded_down(at: datetime) -> datetime:
    return at - (at - EPOCH) % BUCKET


def _rounded_up(at: datetime) -> datetime:
    return at + -(at - EPOCH) % BUCKET
