"""The time during which a test interrupts a line in service.

The measured time is an upper bound: the portal starts the clock before it sends the request to the routers,
and stops the clock after their answers.
"""

from datetime import datetime

from portal.vll.models import ActivationTest, Order, Vll
from portal.vll.states import Lifecycle


def interruption_begins(vll: Vll, now: datetime) -> datetime | None:
    """Return when a test begins to interrupt this line; None if the line is not active.

    A line that is not active carries nothing anyway.
    """
    return now if vll.lifecycle == Lifecycle.ACTIVE else None


def interruption_ends(order: Order, *, now: datetime) -> None:
    """Record that an interruption is over: both ends are reconnected, or the portal has stopped waiting."""
    ActivationTest.objects.filter(order=order, interrupted_at__isnull=False, restored_at__isnull=True).update(
        restored_at=now
    )
