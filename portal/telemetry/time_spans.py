"""Spans of time, ``[begin, end)``, and the span in which a line is in service.

Returned lists are sorted, and have no overlaps and no empty spans.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from portal.telemetry.models import OperInterval
from portal.vll.models import Vll
from portal.vll.states import TERMINAL_LIFECYCLES

Span = tuple[datetime, datetime]


def month_span(month: date) -> Span:
    """Return the calendar month (UTC) that contains this day."""
    since = datetime(month.year, month.month, 1, tzinfo=UTC)
    return since, (since + timedelta(days=31)).replace(day=1)


def last_month(now: datetime) -> date:
    """Return the first day of the calendar month (UTC) before the month of ``now``."""
    return (now.astimezone(UTC).date().replace(day=1) - timedelta(days=1)).replace(day=1)


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return the union of the spans."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if begin >= end:
            continue
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def within(spans: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    """Return the time that is in both ``spans`` and ``others``."""
    others = list(others)
    return merged((max(a, c), min(b, d)) for a, b in spans for c, d in others)


def without(span: Span, others: Iterable[Span]) -> list[Span]:
    """Return the parts of ``span`` that are in none of ``others``."""
    left, begin = [], span[0]
    for away, back in merged(others):
        left.append((begin, min(away, span[1])))
        begin = max(begin, back)
    return merged([*left, (begin, span[1])])


def in_one_only(spans: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    """Return the parts that are in exactly one of ``spans`` and ``others``."""
    these, those = set(spans), set(others)
    changed, before = sorted(these - those), sorted(those - these)
    return merged(
        [part for span in changed for part in without(span, before)]
        + [part for span in before for part in without(span, changed)]
    )


def length(spans: Iterable[Span]) -> timedelta:
    return sum((end - begin for begin, end in spans), timedelta())


@dataclass(frozen=True, slots=True)
class ServiceTime:
    """The time in service of a line. Times of suspension are part of it.

    ``began`` is None if the line was never in service. ``ended`` is None while the line is in service or may
    return to service.
    """

    began: datetime | None
    ended: datetime | None


def service_time(vll: Vll) -> ServiceTime:
    """Return the time from the first to the last moment in service. No counts are expected outside it."""
    intervals = OperInterval.objects.filter(vll_id=vll.pk)
    first = intervals.order_by("began_at").first()
    if first is None:
        return ServiceTime(None, None)
    if vll.lifecycle not in TERMINAL_LIFECYCLES:
        return ServiceTime(first.began_at, None)
    last = intervals.order_by("-began_at", "-pk").first()
    return ServiceTime(first.began_at, last.ended_at if last else None)
