"""The classification of a silence by the evidence: arithmetic over spans of time. Pure functions.

A silent router may still forward. Its lines' counters are the evidence, in 5 minutes: frames that came out at
a line's other end, and counts that its own agent could only deliver later.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from portal.core.unix_time import EPOCH
from portal.telemetry.time_spans import Span, length, merged, within, without
from portal.vll.states import OperStatus

BUCKET = timedelta(minutes=5)
# A sample may begin or end this much before or after its 5 minutes; the agents' clocks differ slightly too.
_BLUR = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Interval:
    """The time that a line had an oper status, as a row of OperInterval; ``ended`` None: it still has it."""

    status: str
    began: datetime
    ended: datetime | None
    judged: bool = False


Verdict = tuple[datetime, datetime, OperStatus]


def spoken_for(silence: Span, five_minutes: Iterable[Span], *, over: bool) -> list[Span]:
    """Return the parts of a silence for which there is evidence.

    ``five_minutes``: the 5 minutes with evidence, or several of them in a row. Only whole 5 minutes of the
    silence count. The first and the last one also count for its edges. While the silence continues (``over``
    False) the last one need not be whole.
    """
    since, until = silence
    first = _rounded_up(since + _BLUR)
    last = _rounded_down(until - _BLUR) if over else _rounded_down(until) + BUCKET
    return merged(
        (since if begin == first else begin, until if over and end == last else min(end, until))
        for begin, end in within(five_minutes, [(first, last)])
    )


def last_five_minutes(silence: Span) -> datetime:
    """Return the start of the last whole 5 minutes of a silence that is over."""
    return _rounded_down(silence[1] - _BLUR) - BUCKET


def down_in(
    silence: Span, spoken: Sequence[Span], *, listened: Sequence[Span], longest: timedelta
) -> list[Span]:
    """Return the parts longer than ``longest`` without evidence for the router while the portal listened."""
    found = (within([quiet], listened) for quiet in without(silence, spoken))
    return merged(span for silent in found if length(silent) > longest for span in silent)


def verdicts_on(silence: Span, *, forwarded: Sequence[Span], down: Sequence[Span]) -> list[Verdict]:
    """Return the line's status in the silence: up while it forwarded, down while a router was, else
    unknown.
    """
    parts: list[Verdict] = [(*span, OperStatus.UP) for span in within([silence], forwarded)]
    for quiet in without(silence, forwarded):
        parts += [(*span, OperStatus.DOWN) for span in within([quiet], down)]
        parts += [(*span, OperStatus.UNKNOWN) for span in without(quiet, down)]
    return sorted(parts)


def rewritten(intervals: Sequence[Interval], verdicts: Sequence[Verdict]) -> list[Interval]:
    """Return a line's intervals with the present knowledge about a silence.

    Observed down time stays. The seconds that counted as up until the router's report was missed also stay,
    unless the router was down from then on.
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
