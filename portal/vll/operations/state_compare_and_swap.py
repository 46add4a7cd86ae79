"""States of orders and VLLs: the first state of an order, and changes by compare-and-swap or under a lock.

The changes are checked against a table.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from django.db.models import F

from portal.core.db.statements import insert
from portal.core.http import current_request_id
from portal.events.announcements import announce
from portal.vll.errors import ConcurrentChange
from portal.vll.models import Order, Vll
from portal.vll.states import IN_SERVICE, LIFECYCLE_TRANSITIONS, ORDER_TRANSITIONS, OrderAction, OrderState


class ForbiddenTransition(Exception):
    """A state change that the table does not allow: a programming error, never a user's mistake."""


class LockedLine(NamedTuple):
    """The fields of a locked line on which its operational status depends."""

    pk: UUID
    lifecycle: str
    revision: int
    oper_status: str
    in_sync: bool


def lines_lock(vlls: Collection[UUID]) -> list[LockedLine]:
    """Lock these lines and return them. All processes lock lines in the same order."""
    if not vlls:
        return []
    locked = Vll.objects.filter(pk__in=vlls).order_by("pk").select_for_update(no_key=True)
    return [LockedLine(*row) for row in locked.values_list(*LockedLine._fields)]


def order_announce(kind: str, order: Order, *, now: datetime, actor: str = "", **data: Any) -> None:
    """Announce an event of the order, with its action."""
    announce(
        kind,
        now=now,
        customer_id=order.customer_id,
        vll_id=order.vll_id,
        order_id=order.pk,
        actor=actor,
        data={"action": order.action, **data},
    )


def order_move(order: Order, state: str, *, now: datetime, actor: str = "", **also: Any) -> None:
    """Move an order to ``state``, and write the columns of ``also`` in the same statement.

    Raises ForbiddenTransition, ConcurrentChange.
    """
    if state not in ORDER_TRANSITIONS.get(order.state, ()):
        raise ForbiddenTransition(f"order {order.pk}: {order.state} -> {state}")
    moved = Order.objects.filter(pk=order.pk, state=order.state).update(state=state, state_at=now, **also)
    if not moved:
        raise ConcurrentChange
    order.refresh_from_db()
    order_announce(f"order.{state}", order, now=now, actor=actor, failure=order.failure)


def lifecycle_move(vll: Vll, lifecycle: str, *, now: datetime, actor: str = "", **also: Any) -> None:
    """Move a VLL to the life cycle state ``lifecycle``. The same statement writes the columns of ``also``.

    Raises ForbiddenTransition, ConcurrentChange.
    """
    if lifecycle not in LIFECYCLE_TRANSITIONS.get(vll.lifecycle, ()):
        raise ForbiddenTransition(f"VLL {vll.pk}: {vll.lifecycle} -> {lifecycle}")
    moved = Vll.objects.filter(pk=vll.pk, lifecycle=vll.lifecycle).update(lifecycle=lifecycle, **also)
    if not moved:
        raise ConcurrentChange
    vll.refresh_from_db()
    announce(f"vll.{lifecycle}", now=now, customer_id=vll.customer_id, vll_id=vll.pk, actor=actor)


def changed_in_place(vll_id: UUID) -> bool:
    """Return whether the line's present revision comes from an order that loses no frame.

    Only such an order keeps ``in_sync_since`` (portal.vll.operations.tombstones).
    """
    orders = Order.objects.filter(vll=vll_id, action=OrderAction.MODIFY, revision=F("vll__revision"))
    return orders.filter(ordered_at__gt=F("vll__in_sync_since")).exists()


def sync_move(vll_id: UUID, in_sync: bool, *, now: datetime) -> None:
    """Record whether both routers of a line in service are in the wanted state, and announce a change.

    After a change that loses no frame, ``in_sync_since`` keeps its time from before the change.
    """
    turned = Vll.objects.filter(pk=vll_id, in_sync=not in_sync, lifecycle__in=IN_SERVICE)
    since = {} if in_sync and changed_in_place(vll_id) else {"in_sync_since": now}
    if turned.update(in_sync=in_sync, **since):
        announce("vll.in_sync" if in_sync else "vll.drift", now=now, vll_id=vll_id)


def order_acknowledge(
    *,
    vll: Vll,
    action: str,
    revision: int,
    actor: str,
    now: datetime,
    pk: UUID | None = None,
    pending_approval: bool = False,
    data: dict[str, Any] | None = None,
    **also: Any,
) -> Order:
    """Insert the order and announce it: acknowledged, or pending approval.

    The VLL must have no other open order.
    """
    order = Order(
        pk=pk or uuid4(),
        vll=vll,
        customer_id=vll.customer_id,
        action=action,
        revision=revision,
        ordered_by=actor,
        request_id=current_request_id.get(),
        ordered_at=now,
        state_at=now,
        **also,
    )
    insert(order)
    order_announce("order.acknowledged", order, now=now, actor=actor, **(data or {}))
    if pending_approval:
        order_move(order, OrderState.PENDING_APPROVAL, now=now)
    return order
