"""Removal of a line: with or without a cooling-off, from a dead router, or only from the portal."""

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction

from portal.accounts import permissions
from portal.accounts.models import Customer, User
from portal.core.background_work import each_row
from portal.vll.convergence.requests import converge_routers_of
from portal.vll.errors import (
    CoolingOffAlready,
    CoolingOffOutOfRange,
    NotAllowedToOrder,
    OrderIsOpen,
    PortShutDown,
    RouterLetsNothingGo,
    WrongLifecycle,
)
from portal.vll.line_allocation import ports_keep
from portal.vll.line_revision import content_of
from portal.vll.line_rules import check_may_order
from portal.vll.models import Order, Vll, VllEnd
from portal.vll.operations.link_loss_forwarding import is_shut_down
from portal.vll.operations.modify_line import order_change, vll_lock
from portal.vll.operations.order_endings import (
    cancel_locked,
    content_before_removal,
    removal_finish,
    removal_values,
)
from portal.vll.operations.state_compare_and_swap import lifecycle_move, order_acknowledge, order_move
from portal.vll.operations.tombstones import tombstone_create
from portal.vll.states import (
    IN_SERVICE,
    TERMINAL_LIFECYCLES,
    TERMINAL_ORDER_STATES,
    AdminStatus,
    Handover,
    Lifecycle,
    OrderAction,
    OrderState,
)


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
            let_go_of=end if vll.handover == Handover.RELEASE else None,
        )
        ports_keep(vll.pk, side=end.side, keeper=tombstone.leases)
    order = vll.orders.exclude(state__in=TERMINAL_ORDER_STATES).first()
    if order is not None and order.state == OrderState.ACKNOWLEDGED:
        order_move(order, OrderState.IN_PROGRESS, now=now)
    removal_finish(vll, order, now=now)
    return 1


@transaction.atomic
def line_let_go(*, user: User, vll: Vll, now: datetime) -> Order:
    """Order that both routers stop managing the line. It keeps forwarding with its former tags.

    For the portal, the line then ends. This order cannot be cancelled, because others may use the line as
    soon as one router has released it. Raises NotAllowedToOrder, OrderIsOpen, WrongLifecycle,
    RouterLetsNothingGo, PortShutDown.
    """
    if not permissions.may_let_go(user, vll.customer):
        raise NotAllowedToOrder(customer=vll.customer.name)
    vll = vll_lock(vll, user)
    if vll.lifecycle not in IN_SERVICE:
        raise WrongLifecycle(lifecycle=vll.lifecycle, action="let go")
    ends = list(vll.ends.select_related("port__router__observed"))
    for end in ends:
        if not getattr(getattr(end.port.router, "observed", None), "adoption", ""):
            raise RouterLetsNothingGo(router=end.port.router.name)
    if is_shut_down(vll, ends):
        raise PortShutDown
    goes = removal_values(vll) | {"handover": Handover.RELEASE}
    lifecycle_move(vll, Lifecycle.PENDING_TERMINATE, now=now, actor=user.username, **goes)
    order = order_acknowledge(
        vll=vll, action=OrderAction.DELETE, revision=vll.revision, actor=user.username, now=now
    )
    converge_routers_of(vll)
    return order


MAX_COOLING_OFF = timedelta(days=90)


@transaction.atomic
def order_delete(
    *,
    user: User,
    vll: Vll,
    now: datetime,
    cooling_off: timedelta | None = None,
    retry_of: Order | None = None,
) -> Order:
    """Order the removal of ``vll``. Its leases are released when both routers have confirmed.

    ``cooling_off``: the length of the cooling-off period; None: the customer's default, else the
    deployment's. With a cooling-off period, the order only stops the traffic. Configuration and leases stay
    until ``decommission_at``, and the line can be restored. A removal without cooling-off ends a running
    cooling-off period. If the VLL's add is still under way, that order is cancelled and returned instead.
    Raises NotAllowedToOrder, OrderIsOpen, WrongLifecycle, CoolingOffOutOfRange. Raises CoolingOffAlready if a
    cooling-off period is requested while one is running.
    """
    vll = Vll.objects.locked().select_related("customer").get(pk=vll.pk)
    check_may_order(user, vll.customer)
    lasts = agreed_cooling_off(vll.customer) if cooling_off is None else cooling_off
    if not timedelta(0) <= lasts <= MAX_COOLING_OFF:
        seconds = int(lasts.total_seconds())
        raise CoolingOffOutOfRange(value=seconds, maximum=int(MAX_COOLING_OFF.total_seconds()))
    open_order = vll.orders.exclude(state__in=TERMINAL_ORDER_STATES).first()
    if open_order is not None:
        ending = open_order.state == OrderState.PENDING_CANCELLATION or open_order.failure
        if open_order.action != OrderAction.ADD or ending:
            raise OrderIsOpen(order_id=str(open_order.pk), action=open_order.action, state=open_order.state)
        return cancel_locked(open_order, vll, actor=user.username, now=now)
    if vll.lifecycle in IN_SERVICE and lasts:
        return _cool_off(vll, actor=user.username, until=now + lasts, now=now, retry_of=retry_of)
    if lasts and vll.decommission_at is not None and vll.wanted_present:
        raise CoolingOffAlready(until=vll.decommission_at)
    return _remove(vll, actor=user.username, now=now)


@transaction.atomic
def order_restore(*, user: User, vll: Vll, now: datetime, retry_of: Order | None = None) -> Order:
    """Undo a removal in its cooling-off period: the line returns to its state before the removal.

    If the order that stops the traffic is still under way, it is cancelled. Raises NotAllowedToOrder,
    OrderIsOpen, WrongLifecycle.
    """
    locked = Vll.objects.locked().get(pk=vll.pk)
    stopping = locked.orders.exclude(state__in=TERMINAL_ORDER_STATES).first()
    if stopping is not None and locked.decommission_at is not None and stopping.action == OrderAction.MODIFY:
        check_may_order(user, locked.customer)
        return cancel_locked(stopping, locked, actor=user.username, now=now)
    locked = vll_lock(locked, user)
    if locked.decommission_at is None or not locked.wanted_present:
        raise WrongLifecycle(lifecycle=locked.lifecycle, action="restore")
    after = content_before_removal(locked)
    return order_change(
        locked,
        before=content_of(locked),
        after=after,
        actor=user.username,
        now=now,
        retry_of=retry_of,
    )


def coolings_off_end(*, now: datetime) -> int:
    """Order the removals whose cooling-off period is over; return how many. Each has its own transaction."""
    over = Vll.objects.filter(
        lifecycle=Lifecycle.PENDING_TERMINATE, decommission_at__lte=now, wanted_present=True
    )
    return sum(
        each_row(over.order_by("pk"), lambda vll: _cooling_off_end(vll, now), what="the end of a cooling-off")
    )


@transaction.atomic
def _cooling_off_end(vll: Vll, now: datetime) -> int:
    vll = Vll.objects.locked().get(pk=vll.pk)
    due = vll.decommission_at is not None and vll.decommission_at <= now and vll.wanted_present
    if not due or vll.orders.exclude(state__in=TERMINAL_ORDER_STATES).exists():
        return 0
    _remove(vll, actor="", now=now)
    return 1


def agreed_cooling_off(customer: Customer) -> timedelta:
    """Return the default cooling-off of a removal: the customer's, else the deployment's."""
    own = customer.cooling_off_s
    return timedelta(seconds=settings.LONGLINE_COOLING_OFF_S if own is None else own)


def _cool_off(vll: Vll, *, actor: str, until: datetime, now: datetime, retry_of: Order | None) -> Order:
    before = content_of(vll)
    lifecycle_move(vll, Lifecycle.PENDING_TERMINATE, now=now, actor=actor)
    after = replace(before, admin_status=AdminStatus.DOWN, decommission_at=until)
    return order_change(vll, before=before, after=after, actor=actor, now=now, retry_of=retry_of)


def _remove(vll: Vll, *, actor: str, now: datetime) -> Order:
    cooling_off = vll.lifecycle == Lifecycle.PENDING_TERMINATE and vll.wanted_present
    if vll.lifecycle not in IN_SERVICE and not cooling_off:
        raise WrongLifecycle(lifecycle=vll.lifecycle, action=OrderAction.DELETE)
    if cooling_off:
        Vll.objects.filter(pk=vll.pk).update(**removal_values(vll))
        vll.refresh_from_db()
    else:
        lifecycle_move(vll, Lifecycle.PENDING_TERMINATE, now=now, actor=actor, **removal_values(vll))
    order = order_acknowledge(vll=vll, action=OrderAction.DELETE, revision=vll.revision, actor=actor, now=now)
    converge_routers_of(vll)
    return order
