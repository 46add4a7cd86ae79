"""The time in service of a line, for which counts are expected."""

from dataclasses import dataclass
from datetime import datetime

from portal.telemetry.models import OperInterval
from portal.vll.models import Vll
from portal.vll.states import TERMINAL_LIFECYCLES


@dataclass(frozen=True, slots=True)
class ServiceTime:
    """``began`` None: never in service. ``ended`` None: in service, or may be again. Suspended lines are
    counted.
    """

    began: datetime | None
    ended: datetime | None


def service_time(vll: Vll) -> ServiceTime:
    """Return the time from the first moment that the line was active to the end of its last.

    Before that its ends are being built, and after it they are being removed: missing counts are not expected
    then.
    """
    intervals = OperInterval.objects.filter(vll_id=vll.pk)
    first = intervals.order_by("began_at").first()
    if first is None:
        return ServiceTime(None, None)
    if vll.lifecycle not in TERMINAL_LIFECYCLES:
        return ServiceTime(first.began_at, None)
    last = intervals.order_by("-began_at", "-pk").first()
    return ServiceTime(first.began_at, last.ended_at if last else None)
