"""Op-status availability: the share of a VLL's time in service during which the VLL was op-up.

Time with unknown status and time of maintenance are counted separately. Maintenance includes requested tests
that interrupt the line.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from portal.core.reader_texts import localized
from portal.telemetry.errors import RangeEmpty
from portal.telemetry.models import OperInterval
from portal.telemetry.time_spans import Span, length, within
from portal.vll.models import ActivationTest, Vll
from portal.vll.states import OperStatus, OrderAction

PERIODS = ("day", "month")


@dataclass(slots=True)
class Times:
    """The seconds in each status, and the seconds of maintenance, which do not count for any status."""

    up_s: float = 0.0
    down_s: float = 0.0
    unknown_s: float = 0.0
    maintenance_s: float = 0.0

    @property
    def availability(self) -> float | None:
        """The ratio up / (up + down), from 0 to 1; None if both are 0."""
        known = self.up_s + self.down_s
        return self.up_s / known if known else None

    @property
    def known_ratio(self) -> float | None:
        """The part of the time in service with a known status; None if the line was not in service."""
        known = self.up_s + self.down_s
        whole = known + self.unknown_s
        return known / whole if whole else None

    def add(self, status: str, span: Span, interruptions: Sequence[Span]) -> None:
        """Add the seconds of ``span``, during which the line had ``status``.

        Seconds within ``interruptions`` count as maintenance.
        """
        maintenance = length(within([span], interruptions)).total_seconds()
        self.maintenance_s += maintenance
        seconds = length([span]).total_seconds() - maintenance
        match status:
            case OperStatus.UP:
                self.up_s += seconds
            case OperStatus.DOWN:
                self.down_s += seconds
            case _:
                self.unknown_s += seconds

    def as_document(self) -> dict[str, float | None]:
        seconds: dict[str, float | None] = {name: round(each, 3) for name, each in asdict(self).items()}
        return seconds | {"availability": self.availability, "known_ratio": self.known_ratio}


def availability(
    *, vll: Vll, since: datetime, until: datetime, period: str = "day", now: datetime
) -> dict[str, Any]:
    """Return the response of ``GET /vlls/<id>/availability``: by ``period`` (UTC), and for the whole range.

    Time out of service and maintenance are left out. Raises RangeEmpty.
    """
    until = min(until, now)
    if since >= until:
        raise RangeEmpty
    interruptions = _interruptions([vll.pk], since, until).get(vll.pk, [])
    intervals = reaching(since, until).filter(vll_id=vll.pk).order_by("began_at", "pk")
    total, by_period = Times(), {start: Times() for start in _periods(since, until, period)}
    for interval in intervals:
        begin, end = max(interval.began_at, since), min(interval.ended_at or until, until)
        while begin < end:
            start = _period_of(begin, period)
            stop = min(end, _after(start, period))
            for times in (total, by_period[start]):
                times.add(interval.status, (begin, stop), interruptions)
            begin = stop
    return {
        "period": period,
        **total.as_document(),
        "periods": [{"start": start, **times.as_document()} for start, times in by_period.items()],
    }


def availability_of_many(*, vlls: Collection[UUID], since: datetime, until: datetime) -> dict[UUID, Times]:
    """Return the seconds in each status by line. Lines that were not in service have no entry."""
    found: dict[UUID, Times] = {}
    interruptions = _interruptions(vlls, since, until)
    intervals = reaching(since, until).filter(vll_id__in=vlls)
    for vll, status, began, ended in intervals.values_list("vll_id", "status", "began_at", "ended_at"):
        span = max(began, since), min(ended or until, until)
        found.setdefault(vll, Times()).add(status, span, interruptions.get(vll, []))
    return found


def availability_text(ratio: float | None, known: float | None) -> str:
    """Return a text such as ``99.988 %`` or ``100 % of the known 97.2 %``; "" if no status is known.

    Values are rounded down. A line with down time never has an availability of 100 %, and a line with
    unknown time never has 100 % known time.
    """
    if ratio is None or known is None:
        return ""
    if known < 1:
        return _("{up} of the known {known}").format(up=_percent(ratio), known=_percent(known))
    return _percent(ratio)


def _percent(ratio: float) -> str:
    return f"{localized(f'{math.floor(ratio * 100_000) / 1000:g}')} %"


def reaching(since: datetime, until: datetime) -> QuerySet[OperInterval]:
    """Return the intervals of all lines that overlap the time from ``since`` to ``until``."""
    return OperInterval.objects.filter(Q(ended_at__isnull=True) | Q(ended_at__gt=since), began_at__lt=until)


def _interruptions(vlls: Collection[UUID], since: datetime, until: datetime) -> dict[UUID, list[Span]]:
    """Return, for each line, when requested tests interrupted it. A running test counts until ``until``."""
    requested = ActivationTest.objects.filter(
        Q(restored_at__isnull=True) | Q(restored_at__gt=since),
        vll__in=vlls,
        order__action=OrderAction.TEST,
        interrupted_at__lt=until,
    )
    found: dict[UUID, list[Span]] = {}
    for vll, begin, end in requested.values_list("vll", "interrupted_at", "restored_at"):
        if begin is not None:
            found.setdefault(vll, []).append((begin, end or until))
    return found


def _period_of(at: datetime, period: str) -> datetime:
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight.replace(day=1) if period == "month" else midnight


def _after(start: datetime, period: str) -> datetime:
    return _period_of(start + timedelta(days=31), "month") if period == "month" else start + timedelta(days=1)


def _periods(since: datetime, until: datetime, period: str) -> list[datetime]:
    starts = [_period_of(since, period)]
    while (following := _after(starts[-1], period)) < until:
        starts.append(following)
    return starts
