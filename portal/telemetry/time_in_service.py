"""The time in service of a line, for which counts are expected."""

from dataclasses import dataclass
from datetime import datetime

from portal.telemetry.models import OperInterval
from portal.vll.models import Vll
from portal.vll.states import TERMINAL_LIFECYCLES


@dataclass(frozen=True, slots=True)
class ServiceTime:
    """The time in service of a line. Times of suspension are part of it.

    ``began`` is None if the line was never in service. ``ended`` is None while the line is in service or may
    return to service.
    """

    began: datetime | None
    ended: datetime | None


def service_time(vll: Vll) -> ServiceTime:
    """Return the time from the start of a line's first interval in service to the end of its last interval.

    No counts are expected outside this time, because the line's ends are then being built or removed.
    """
    intervals = OperInterval.objects.filter(vll_id=vll.pk)
    first = intervals.order_by("began_at").first()
    if first is None:
        return ServiceTime(None, None)
    if vll.lifecycle not in TERMINAL_LIFECYCLES:
        return ServiceTime(first.began_at, None)
    last = intervals.order_by("-began_at", "-pk").first()
    return ServiceTime(first.began_at, last.ended_at if last else None)
