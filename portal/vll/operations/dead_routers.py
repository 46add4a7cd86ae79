"""Routers that a NOC admin has declared dead: removals do not wait for them.

A line that is gone from its other router ends then, and its ports are free. Its VNI or pair of tunnel
addresses stays quarantined until the dead router has acknowledged that nothing of the line is left on it,
however long that takes: it may come back, and send into a tunnel that is another customer's by then.
"""

import uuid
from datetime import datetime
from functools import reduce
from operator import or_

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from portal.allocation.models import BandwidthBooking, CoreBooking, PortVlanLease
from portal.vll.models import Order, Vll, VllEnd, VllTombstone
from portal.vll.operations.force import forced_settle
from portal.vll.operations.gone import line_end
from portal.vll.operations.leasing import ports_release, tunnel_keep
from portal.vll.operations.transitions import order_move
from portal.vll.states import TERMINAL_LIFECYCLES, TERMINAL_ORDER_STATES, OrderState


def dead_routers_settle(*, now: datetime) -> int:
    """End the removals that wait for dead routers alone; how many. Each is its own transaction."""
    waiting = VllEnd.objects.filter(
        port__router__dead_since__isnull=False, vll__wanted_present=False
    ).exclude(vll__lifecycle__in=TERMINAL_LIFECYCLES)
    ended = sum(_line_end(vll, now) for vll in sorted(set(waiting.values_list("vll", flat=True))))
    _ports_free()
    _forced_settle(now)
    return ended


@transaction.atomic
def _line_end(vll_id: uuid.UUID, now: datetime) -> int:
    vll = Vll.objects.select_for_update().get(pk=vll_id)
    if vll.wanted_present or vll.lifecycle in TERMINAL_LIFECYCLES:
        return 0
    unconfirmed = vll.ends.exclude(status=VllEnd.Status.REMOVED, status_revision=vll.revision)
    left = list(unconfirmed.select_related("port__router").order_by("side"))
    if not left or any(end.port.router.dead_since is None for end in left):
        return 0
    keeper = uuid.uuid4()
    VllTombstone.objects.bulk_create(
        VllTombstone(vll=vll, side=end.side, router=end.port.router, revision=vll.revision, leases=keeper)
        for end in left
    )
    tunnel_keep(vll.pk, keeper=keeper, now=now)
    order = vll.orders.exclude(state__in=TERMINAL_ORDER_STATES).first()
    if order is not None and order.state == OrderState.ACKNOWLEDGED:
        order_move(order, OrderState.IN_PROGRESS, now=now)
    line_end(vll, order, now=now)
    return 1


def _ports_free() -> None:
    """The ports of ends that moved away from dead routers; those of lines that ended are free already."""
    booked = VllTombstone.objects.filter(leases__in=BandwidthBooking.objects.values("holder"))
    alive = booked.filter(router__dead_since__isnull=True).values("leases")
    for leases in (
        booked.exclude(leases__in=alive).order_by("leases").values_list("leases", flat=True).distinct()
    ):
        with transaction.atomic():
            ports_release(leases)


def _forced_settle(now: datetime) -> None:
    """What orders that were ended by force still have of ports, where dead routers alone are waited for."""
    leased = (
        Exists(model.objects.filter(holder=OuterRef("pk")))
        for model in (BandwidthBooking, CoreBooking, PortVlanLease)
    )
    dead = Q(vll__ends__port__router__dead_since__isnull=False) | Q(
        vll__tombstones__router__dead_since__isnull=False
    )
    leasing = Order.objects.filter(reduce(or_, leased), dead, forced__isnull=False)
    for vll_id in sorted(set(leasing.values_list("vll", flat=True))):
        with transaction.atomic():
            vll = Vll.objects.select_for_update().get(pk=vll_id)
            forced_settle(vll, vll.orders.filter(forced__isnull=False), now=now)
