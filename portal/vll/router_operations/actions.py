"""The NOC's actions on a router. Each function owns one transaction.

Maintenance: the router takes no new lines, but convergence goes on. The module ``drain`` has the drain, which
also moves traffic away.

Maintenance lock (``hold`` in the API): the portal sends nothing at all, so it cannot interfere with an
operator's work on the router.

Retry: the portal tries again now, and does not wait for the end of the pause after failures.

Calibration: the portal uses measured weights for the router's ends, and recalculates the bookings of its
lines. It locks the router, then the lines, then the router's sum of bookings (ADR 76), so that no order
changes a booking meanwhile.

Rebuild: the agent deletes and re-creates an end's sub-interface, because the router drops the end's frames.
The agent does this automatically once, after VPP's tracer has shown such frames. Only an operator's request
repeats it.

Dead: removals do not wait for the router's confirmation (portal.vll.operations.line_removal).
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce

from portal.accounts import permissions
from portal.accounts.models import User
from portal.allocation.cpu_core_bookings import cores_revalue, cores_suffice
from portal.allocation.models import CoreBooking
from portal.allocation.packet_capacity import Calibration, Weights, weights_of
from portal.celery_tasks import REBUILD_END
from portal.core.background_work import each_row
from portal.core.network.encapsulations import Transport
from portal.events.announcements import announce
from portal.events.task_requests import resend_tasks, send_task
from portal.inventory.kinds import check_not_retired
from portal.inventory.models import Router
from portal.vll.convergence.requests import converge_routers_on_request
from portal.vll.errors import NotForYouToForce, RouterIsDead, RouterIsDrained
from portal.vll.models import Vll, VllEnd
from portal.vll.operations.state_compare_and_swap import lines_lock


@transaction.atomic
def router_maintenance_set(*, router: Router, on: bool, user: User, now: datetime) -> None:
    """Begin or end the maintenance. A repeated request changes nothing.

    The maintenance of a drained or dead router cannot end: raises RouterIsDrained, RouterIsDead.
    """
    if not on and Router.objects.filter(pk=router.pk, drained_since__isnull=False).exists():
        raise RouterIsDrained(router=router.name)
    if not on and Router.objects.filter(pk=router.pk, dead_since__isnull=False).exists():
        raise RouterIsDead(router=router.name)
    rows = Router.objects.filter(pk=router.pk, maintenance_since__isnull=on)
    if rows.update(maintenance_since=now if on else None):
        kind = "router.maintenance_began" if on else "router.maintenance_ended"
        announce(kind, now=now, router_id=router.pk, actor=user.username)
        if not on:
            converge_routers_on_request([router.pk])


@transaction.atomic
def router_lock_set(*, router: Router, on: bool, user: User, now: datetime) -> None:
    """Stop sending intents to the router, or resume and catch up immediately.

    An exchange with the router that is under way is completed.
    """
    rows = Router.objects.filter(pk=router.pk, locked_since__isnull=on)
    if rows.update(locked_since=now if on else None):
        announce(
            "router.held" if on else "router.released", now=now, router_id=router.pk, actor=user.username
        )
        if not on:
            converge_routers_on_request([router.pk])


@transaction.atomic
def router_retry(*, router: Router, user: User, now: datetime) -> None:
    """Try to converge the router now, and skip the pause after failures."""
    announce("router.retried", now=now, router_id=router.pk, actor=user.username)
    converge_routers_on_request([router.pk])


@transaction.atomic
def router_declare_dead(*, router: Router, user: User, now: datetime, reason: str) -> None:
    """Let all removals continue without this router's confirmation.

    Only NOC admins may do this. Maintenance begins as well. A repeated declaration changes nothing. Raises
    NotForYouToForce.
    """
    _check_may_force(user)
    locked = Router.objects.select_for_update(no_key=True).get(pk=router.pk)
    if locked.dead_since is not None:
        return
    Router.objects.filter(pk=router.pk).update(
        dead_since=now, maintenance_since=Coalesce(F("maintenance_since"), now)
    )
    if locked.maintenance_since is None:
        announce("router.maintenance_began", now=now, router_id=router.pk, actor=user.username)
    data = {"reason": reason}
    announce("router.declared_dead", now=now, router_id=router.pk, actor=user.username, data=data)


@transaction.atomic
def router_declare_alive(*, router: Router, user: User, now: datetime) -> None:
    """Let removals wait for the router's confirmation again, and converge the router.

    Its maintenance goes on. Raises NotForYouToForce.
    """
    _check_may_force(user)
    if Router.objects.filter(pk=router.pk, dead_since__isnull=False).update(dead_since=None):
        announce("router.declared_alive", now=now, router_id=router.pk, actor=user.username)
        converge_routers_on_request([router.pk])


def _check_may_force(user: User) -> None:
    if not permissions.may_remove_from_the_network(user):
        raise NotForYouToForce


@transaction.atomic
def router_calibration_set(
    *,
    router: Router,
    calibration: Calibration | None,
    user: User,
    now: datetime,
    accept_affected: bool = False,
) -> None:
    """Use this calibration for the weights of the router's ends; None restores the shipped cost table.

    Raises Retired. Raises CoresBelowBooked if a transport becomes heavier and the bookings then exceed the
    router's cores, unless ``accept_affected`` is True. Nothing changes if the router has these figures
    already.
    """
    locked = (
        Router.objects.select_for_update(of=("self",), no_key=True)
        .select_related("observed")
        .get(pk=router.pk)
    )
    check_not_retired(locked)
    kept = None if calibration is None else calibration.kept()
    if kept == locked.calibration:
        return
    before = weights_of(locked)
    locked.calibration = kept
    locked.save(update_fields=["calibration"])
    booked_lines_lock(locked)
    heavier = lines_revalue(locked, before=before)
    if heavier and not accept_affected:
        cores_suffice(locked)
    kind = "router.calibration_returned" if kept is None else "router.calibration_taken"
    announce(kind, now=now, router_id=locked.pk, actor=user.username, data=kept)


def booked_lines_lock(router: Router) -> None:
    """Lock the lines that have booked cores of this router, so that no order changes their bookings.

    The caller has locked the router.
    """
    booked = CoreBooking.objects.filter(router=router).values_list("owner", flat=True)
    lines_lock(set(booked))


def lines_revalue(router: Router, *, before: Weights) -> bool:
    """Recalculate the bookings of the router's lines. Return whether any transport has become heavier.

    The caller has locked the lines.
    """
    after = weights_of(router)
    booked = CoreBooking.objects.filter(router=router).values("owner")
    lines = {line.pk: (Transport(line.transport), line.cir_bps) for line in Vll.objects.filter(pk__in=booked)}
    cores_revalue(router=router, lines=lines, before=before, after=after)
    return any(after[transport] > before[transport] for transport in Transport)


# A request that no worker begins within this time fails: the router may pass frames again, and a rebuild
# interrupts the line.
_REBUILD_WITHIN = timedelta(minutes=15)


@transaction.atomic
def end_rebuild_request(*, end: VllEnd, user: User, now: datetime) -> None:
    """Request the rebuild from the end's router, through a task. Read the end with
    ``select_related("port")``.

    If the task is lost, ``rebuilds_resend`` sends it again.
    """
    VllEnd.objects.filter(pk=end.pk).update(rebuild_requested_at=now)
    announce(
        "router.rebuild_requested",
        now=now,
        router_id=end.port.router_id,
        actor=user.username,
        data={"vll": str(end.vll_id), "end": end.side},
    )
    send_task(REBUILD_END, str(end.vll_id), end.side, now.isoformat())


def rebuild_begin(end: VllEnd, *, requested_at: datetime) -> bool:
    """Return whether the request of ``requested_at`` still waits; if so, no other call returns True for it.

    The request is carried out once at most, because each rebuild interrupts the line.
    """
    waiting = VllEnd.objects.filter(pk=end.pk, rebuild_requested_at=requested_at)
    return bool(waiting.update(rebuild_requested_at=None))


def rebuilds_resend(*, now: datetime) -> None:
    """Send the tasks of waiting requests again. A request that has waited too long fails."""
    waiting = VllEnd.objects.filter(rebuild_requested_at__isnull=False)
    late = waiting.filter(rebuild_requested_at__lt=now - _REBUILD_WITHIN).select_related("port")
    each_row(late, lambda end: _rebuild_give_up(end, now), what="giving up a rebuild")
    rows = waiting.order_by("rebuild_requested_at").values_list("vll", "side", "rebuild_requested_at")
    resend_tasks(REBUILD_END, [(str(vll), side, at.isoformat()) for vll, side, at in rows if at])


@transaction.atomic
def _rebuild_give_up(end: VllEnd, now: datetime) -> None:
    if end.rebuild_requested_at and rebuild_begin(end, requested_at=end.rebuild_requested_at):
        end_rebuild_failed(end=end, why="no worker has begun the rebuild in time", now=now)


@transaction.atomic
def end_rebuild_failed(*, end: VllEnd, why: str, now: datetime) -> None:
    """Record that the agent did not accept the request."""
    announce(
        "router.rebuild_failed",
        now=now,
        router_id=end.port.router_id,
        data={"vll": str(end.vll_id), "end": end.side, "detail": why[:500]},
    )
