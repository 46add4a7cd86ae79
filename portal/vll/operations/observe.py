"""Operational status: from what the agents observe of both ends, and from how fresh that is."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from portal.events.operations import announce
from portal.inventory.models import ObservedRouter, Router
from portal.vll.models import Vll, VllEnd
from portal.vll.operations.answers import EndObservation
from portal.vll.states import Lifecycle, OperStatus

# Three report intervals and a little: an agent reports every 10 s.
FRESH = timedelta(seconds=35)
_IN_SERVICE = (Lifecycle.ACTIVE, Lifecycle.SUSPENDED)


@transaction.atomic
def ends_observed(*, router: Router, ends: Sequence[EndObservation], now: datetime) -> None:
    """Store what this router's agent says of its ends, and refresh the status of their VLLs."""
    said = {(end.vll, end.side): end for end in ends}
    rows = VllEnd.objects.filter(port__router=router, vll__lifecycle__in=_IN_SERVICE).select_related("vll")
    changed: list[VllEnd] = []
    for row in rows.order_by("vll_id", "side"):
        end = said.get((row.vll_id, row.side))
        fresh = end is not None and end.revision == row.vll.revision
        facts = (end.link_up, end.reachable, end.drift) if fresh and end else (None, None, [])
        if (row.link_up, row.reachable, row.drift) != facts:
            row.link_up, row.reachable, row.drift = facts
            changed.append(row)
    VllEnd.objects.bulk_update(changed, ["link_up", "reachable", "drift"], batch_size=500)
    _refresh(router, now)


@transaction.atomic
def stale_vlls_mark(*, now: datetime) -> int:
    """Turn VLLs whose routers have fallen silent to op-unknown; how many."""
    silent = Q(ends__port__router__observed__isnull=True) | Q(
        ends__port__router__observed__reported_at__lt=now - FRESH
    )
    stale = (
        Vll.objects.filter(silent, lifecycle__in=_IN_SERVICE)
        .exclude(oper_status=OperStatus.UNKNOWN)
        .values_list("pk", flat=True)
        .distinct()
    )
    return _write_statuses(dict.fromkeys(stale, OperStatus.UNKNOWN), now)


def _refresh(router: Router, now: datetime) -> None:
    vlls = Vll.objects.filter(ends__port__router=router, lifecycle__in=_IN_SERVICE).distinct()
    fresh = set(
        ObservedRouter.objects.filter(reported_at__gte=now - FRESH).values_list("router_id", flat=True)
    ) | {router.pk}
    statuses = {}
    drifting: dict[UUID, bool] = {}
    for vll in vlls.prefetch_related("ends__port"):
        ends = list(vll.ends.all())
        status = oper_status_of(ends, fresh)
        if status != vll.oper_status:
            statuses[vll.pk] = status
        in_sync = not any(end.drift for end in ends) and all(
            end.status == VllEnd.Status.VERIFIED and end.status_revision == vll.revision for end in ends
        )
        if in_sync != vll.in_sync:
            drifting[vll.pk] = in_sync
    _write_statuses(statuses, now)
    for pk, in_sync in sorted(drifting.items()):
        if Vll.objects.filter(pk=pk, in_sync=not in_sync, lifecycle__in=_IN_SERVICE).update(in_sync=in_sync):
            announce("vll.in_sync" if in_sync else "vll.drift", now=now, vll_id=pk)


def oper_status_of(ends: Iterable[VllEnd], fresh_routers: set[int]) -> OperStatus:
    """op-up: both UNIs have link, no tunnel's route is a drop, reports are fresh (RFC 9181)."""
    ends = list(ends)
    if any(end.port.router_id not in fresh_routers or end.link_up is None for end in ends):
        return OperStatus.UNKNOWN
    if all(end.link_up and end.reachable is not False for end in ends):
        return OperStatus.UP
    return OperStatus.DOWN


def _write_statuses(statuses: dict[UUID, OperStatus], now: datetime) -> int:
    written = 0
    for pk, status in sorted(statuses.items()):
        vll = Vll.objects.filter(pk=pk, lifecycle__in=_IN_SERVICE).exclude(oper_status=status)
        if vll.update(oper_status=status):
            written += 1
            announce(f"vll.{status}", now=now, vll_id=pk)
    return written
