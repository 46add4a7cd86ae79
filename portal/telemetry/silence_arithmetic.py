"""Pure functions that classify the parts of a router's silence by evidence.

A silent router may still forward frames. The counters of its lines, by 5-minute bucket, are the evidence for
this: frames that came out at a line's other end, or counts that the router's own agent delivered later.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from portal.core.clock import EPOCH
from portal.telemetry.time_spans import Span, length, merged, within, without
from portal.vll.states import OperStatus

BUCKET = timedelta(minutes=5)
# A sample may begin or end this much before or after its 5-minute bucket. In addition, the agents' clocks
# differ slightly.
_BLUR = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Interval:
    """The time during which a line had an oper status, like a row of OperInterval.

    ``ended`` is None while the line has that status.
    """

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

    The status is up while the line forwarded, down while one of its routers counts as down, and otherwise
    unknown.
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
