"""End removals without waiting for routers that a NOC admin has declared dead.

A removal ends when the other router has confirmed it. The port on that router is then free. The line's
resources on the dead router stay leased until that router confirms that nothing of the line is left. The
line's VNI, GRE key or pair of tunnel addresses stays leased too. The dead router may still forward, so an
early release would give its port or tunnel to another customer.
"""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from portal.core.db.each_row import each_row
from portal.vll.models import Vll, VllEnd
from portal.vll.operations.removal_steps import removal_finish
from portal.vll.operations.resource_leases import ports_keep
from portal.vll.operations.state_compare_and_swap import order_move
from portal.vll.operations.tombstones import tombstone_create
from portal.vll.states import TERMINAL_LIFECYCLES, TERMINAL_ORDER_STATES, Handover, OrderState


def dead_routers_settle(*, now: datetime) -> int:
    """End the removals that wait only for dead routers; return how many. Each has its own transaction."""
    waiting = VllEnd.objects.filter(
        port__router__dead_since__isnull=False, vll__wanted_present=False
    ).exclude(vll__lifecycle__in=TERMINAL_LIFECYCLES)
    lines = sorted(set(waiting.values_list("vll", flat=True)))
    return sum(
        each_row(lines, lambda vll: _line_end(vll, now), what="a removal that waits for a dead router")
    )


@transaction.atomic
def _line_end(vll_id: UUID, now: datetime) -> int:
    vll = Vll.objects.locked().get(pk=vll_id)
    if vll.wanted_present or vll.lifecycle in TERMINAL_LIFECYCLES:
        return 0
    unconfirmed = vll.ends.exclude(status=VllEnd.Status.REMOVED, status_revision=vll.revision)
    left = list(unconfirmed.select_related("port__router").order_by("side"))
    if not left or any(end.port.router.dead_since is None for end in left):
        return 0
    for end in left:
        tombstone = tombstone_create(
            vll,
            side=end.side,
            router_id=end.port.router_id,
            revision=vll.revision,
            before=None,
            after=None,
            let_go_of=end if vll.handover == Handover.RELEASE else None,
        )
        ports_keep(vll.pk, side=end.side, keeper=tombstone.leases)
    order = vll.orders.exclude(state__in=TERMINAL_ORDER_STATES).first()
    if order is not None and order.state == OrderState.ACKNOWLEDGED:
        order_move(order, OrderState.IN_PROGRESS, now=now)
    removal_finish(vll, order, now=now)
    return 1
