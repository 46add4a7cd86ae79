"""The time for which a test interrupts a line in service: an upper bound, as routers are asked only after its
begin and have answered before its end."""

from datetime import datetime

from portal.vll.models import LineTest, Order, Vll
from portal.vll.states import Lifecycle


def interruption_begins(vll: Vll, now: datetime) -> datetime | None:
    """When a test of this line interrupts it; None where nothing is carried anyway."""
    return now if vll.lifecycle == Lifecycle.ACTIVE else None


def interruption_ends(order: Order, *, now: datetime) -> None:
    """Both ends of the order's line are joined to the customer again, or nobody waits for that any more."""
    LineTest.objects.filter(order=order, interrupted_at__isnull=False, restored_at__isnull=True).update(
        restored_at=now
    )
