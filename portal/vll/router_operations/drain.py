"""Drain a router. The traffic between other routers then avoids this router where possible, the router takes
no new lines, and the lines that end on the router move away.

The procedure is the usual one of network operators. The portal calculates paths as if the router advertised
its links at the largest metric that still counts (stub router of RFC 6987, overload of IS-IS). The lines that
end on the router are then moved or stopped, one by one.

The customer chooses where a line moves. The portal moves nothing without a request.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, QuerySet
from django.db.models.functions import Coalesce

from portal.accounts.models import User
from portal.events.announcements import announce
from portal.inventory.kinds import check_not_retired
from portal.inventory.models import Port, Router
from portal.vll.inventory_rules import watched
from portal.vll.models import Order, VllEnd, VllTombstone
from portal.vll.router_operations.actions import router_maintenance_set
from portal.vll.states import TERMINAL_LIFECYCLES, TERMINAL_ORDER_STATES, Lifecycle


class DrainStep(StrEnum):
    """The next step for a line that ends on a drained router."""

    # The customer has a port on another router: move the end there, or suspend the line.
    MOVE = "move"
    # The customer has no port on another router for the end.
    SUSPEND = "suspend"
    # An order is under way.
    WAIT = "wait"
    # The line forwards nothing: it is suspended, or in its cooling-off period.
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class DrainProgress:
    """The number of ends on the router at each step.

    ``leaving``: the number of ends that have moved away and whose removal this router has not confirmed.
    """

    steps: dict[DrainStep, int]
    leaving: int

    @property
    def carrying(self) -> int:
        """Return the number of ends that forward or may forward."""
        return sum(count for step, count in self.steps.items() if step is not DrainStep.STOPPED)

    @property
    def is_drained(self) -> bool:
        return self.carrying == 0 and self.leaving == 0


@transaction.atomic
def drain_begin(*, router: Router, user: User, now: datetime, accept_affected: bool = False) -> None:
    """Begin the drain and the maintenance. A repeated request changes nothing.

    Raises Retired. Raises LinesAffected if the paths around the router are too narrow for lines in service.
    """
    locked = Router.objects.select_for_update(no_key=True).get(pk=router.pk)
    check_not_retired(locked)
    if locked.drained_since is not None:
        return
    with watched(locked.name, accepted=accept_affected, user=user, now=now):
        Router.objects.filter(pk=router.pk).update(
            drained_since=now, maintenance_since=Coalesce(F("maintenance_since"), now)
        )
    if locked.maintenance_since is None:
        announce("router.maintenance_began", now=now, router_id=router.pk, actor=user.username)
    announce("router.drain_began", now=now, router_id=router.pk, actor=user.username)


@transaction.atomic
def drain_end(
    *,
    router: Router,
    user: User,
    now: datetime,
    accept_affected: bool = False,
    with_maintenance: bool = False,
) -> None:
    """Let paths use the router again. Its maintenance goes on, unless ``with_maintenance`` ends it too.

    Raises LinesAffected. With ``with_maintenance``, also raises RouterIsDead for a dead router.
    """
    locked = Router.objects.select_for_update(no_key=True).get(pk=router.pk)
    if locked.drained_since is not None:
        with watched(locked.name, accepted=accept_affected, user=user, now=now):
            Router.objects.filter(pk=router.pk).update(drained_since=None)
        announce("router.drain_ended", now=now, router_id=router.pk, actor=user.username)
    if with_maintenance:
        router_maintenance_set(router=router, on=False, user=user, now=now)


def ends_to_drain(router: Router) -> QuerySet[VllEnd]:
    """Select the ends of unfinished lines on the router, with the annotations that ``drain_step`` needs."""
    elsewhere = (
        Port.objects.filter(customer=OuterRef("vll__customer"), router__maintenance_since__isnull=True)
        .exclude(router=router)
        .exclude(router__agent_url="")
    )
    open_orders = Order.objects.filter(vll=OuterRef("vll")).exclude(state__in=TERMINAL_ORDER_STATES)
    return (
        VllEnd.objects.filter(port__router=router)
        .exclude(vll__lifecycle__in=TERMINAL_LIFECYCLES)
        .select_related("vll__customer", "port__router")
        .annotate(can_move=Exists(elsewhere), is_busy=Exists(open_orders))
    )


def drain_step(end: VllEnd) -> DrainStep:
    """Return the next step for an end of ``ends_to_drain``."""
    return _step(end.vll.lifecycle, is_busy=end.is_busy, can_move=end.can_move)  # type: ignore[attr-defined]


def drain_progress(router: Router) -> DrainProgress:
    """Count the ends at each step now, in two statements."""
    steps = dict.fromkeys(DrainStep, 0)
    ends: Any = ends_to_drain(router).select_related(None)  # the stubs do not see its annotations
    facts = ends.values("vll__lifecycle", "is_busy", "can_move")
    for row in facts.annotate(count=Count("pk")).order_by():
        step = _step(row["vll__lifecycle"], is_busy=row["is_busy"], can_move=row["can_move"])
        steps[step] += row["count"]
    return DrainProgress(steps=steps, leaving=VllTombstone.objects.filter(router=router).count())


def _step(lifecycle: str, *, is_busy: bool, can_move: bool) -> DrainStep:
    if is_busy or lifecycle == Lifecycle.PENDING_ACTIVE:
        return DrainStep.WAIT
    if lifecycle != Lifecycle.ACTIVE:
        return DrainStep.STOPPED
    return DrainStep.MOVE if can_move else DrainStep.SUSPEND
