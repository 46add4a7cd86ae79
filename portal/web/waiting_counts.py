"""Counts of the items that wait for the NOC, for the NOC's navigation.

One statement reads all counts, from partial indexes only.
"""

from functools import reduce
from typing import Any

from django.db.models import Count, QuerySet, Value

from portal.alarms.kinds import Kind
from portal.alarms.queries import unacknowledged
from portal.core import clock
from portal.diagnosis.models import TroubleReport
from portal.telemetry.models import Quarantine
from portal.vll.models import Order
from portal.vll.states import OrderState

ALARMS, PENDING_APPROVAL, TROUBLE, QUARANTINES = "alarms", "pending_approval", "trouble", "quarantines"
# The number of alarms about items that other pages also list. This number is subtracted, so that each item
# counts once.
AGAIN = "again"
_LISTED_ELSEWHERE = (Kind.ORDER_PENDING_APPROVAL, Kind.TROUBLE, Kind.QUARANTINE)


def waiting_counts() -> dict[str, int]:
    """Return the number of waiting items by kind.

    The counts are not cached, so that a decision of the NOC is visible immediately.
    """
    alarms = unacknowledged(clock.now())
    waiting: dict[str, QuerySet[Any]] = {
        ALARMS: alarms,
        AGAIN: alarms.filter(kind__in=_LISTED_ELSEWHERE),
        PENDING_APPROVAL: Order.objects.filter(state=OrderState.PENDING_APPROVAL),
        TROUBLE: TroubleReport.objects.filter(closed_at__isnull=True),
        QUARANTINES: Quarantine.objects.filter(counted_at__isnull=True, state=Quarantine.State.UNDECIDED),
    }
    counted = [
        rows.order_by().annotate(what=Value(what)).values("what").annotate(n=Count("pk"))
        for what, rows in waiting.items()
    ]
    all_of_them = reduce(lambda one, other: one.union(other, all=True), counted)
    return {row["what"]: row["n"] for row in all_of_them}
