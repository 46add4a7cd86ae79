"""The rules of activation tests: whether a line gets a test before it is handed over, and how long a test
interrupts a line in service.

The time of an interruption is an upper bound: the portal starts the clock before it sends the request to the
routers, and stops the clock after their answers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from portal.core.environment import ActivationTestMode
from portal.core.network.encapsulations import Encapsulation
from portal.inventory.models import ObservedRouter, Router
from portal.vll.line_revision import LineRevision
from portal.vll.models import ActivationTest, Order, Vll
from portal.vll.states import Lifecycle


@dataclass(frozen=True, slots=True)
class Untested:
    """The reason why no frames are sent.

    ``routers``: the names of the routers that cannot send test frames.
    """

    reason: ActivationTest.Reason
    routers: tuple[str, ...] = ()


def needs_test(before: LineRevision | None, after: LineRevision) -> bool:
    """Return whether frames will take another path: the line is new, or its tunnel or its routers change.

    Return False if activation tests are switched off.
    """
    if settings.LONGLINE_LINE_TEST is ActivationTestMode.OFF:
        return False
    return before is None or takes_another_way(before, after)


def takes_another_way(before: LineRevision, after: LineRevision) -> bool:
    """Return whether both routers must change the line's tunnel before frames pass again."""
    return before.tunnel != after.tunnel


def loses_no_frame(before: LineRevision, after: LineRevision) -> bool:
    """Return whether the routers make the change in place, while frames flow (tests/lab/test_in_place.py)."""
    same_access = all(end.access == after.ends[side].access for side, end in before.ends.items())
    return not takes_another_way(before, after) and same_access and before.admin_status == after.admin_status


def untested(content: LineRevision, routers: Iterable[Router]) -> Untested | None:
    """Return why a line with this content cannot be tested between these routers, or None if it can.

    Read the routers with ``select_related("observed")``.
    """
    if content.encapsulation == Encapsulation.L2XC:
        return Untested(ActivationTest.Reason.NO_TUNNEL)
    unable = {router.name for router in routers if not _sends_test_frames(router)}
    return Untested(ActivationTest.Reason.ROUTER_CANNOT, tuple(sorted(unable))) if unable else None


def _sends_test_frames(router: Router) -> bool:
    observed: ObservedRouter | None = getattr(router, "observed", None)
    return observed is not None and observed.line_tests


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
