"""Alarms about orders that take too long."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Coalesce

from portal.core.db.each_row import each_row
from portal.events.outbox import announce
from portal.vll.models import Order
from portal.vll.states import TERMINAL_ORDER_STATES, OrderState

# An order that is open for longer than this gets an alarm.
OVERDUE = timedelta(seconds=110)


def orders_overdue_alarm(*, now: datetime) -> int:
    """Raise the alarm once for each order that is open for too long; return how many.

    Each order has its own transaction. Orders pending approval get no alarm, because they wait for the NOC.
    """
    overdue = list(_overdue(now).order_by("pk").values_list("pk", flat=True))
    return sum(each_row(overdue, lambda pk: _alarm(pk, now), what="the alarm of an overdue order"))


def _overdue(now: datetime) -> QuerySet[Any]:
    return (
        Order.objects.alias(begun_at=Coalesce("approved_at", "ordered_at"))
        .filter(begun_at__lt=now - OVERDUE, alarmed_at__isnull=True)
        .exclude(state__in=[*TERMINAL_ORDER_STATES, OrderState.PENDING_APPROVAL])
    )


@transaction.atomic
def _alarm(pk: UUID, now: datetime) -> int:
    """Raise the alarm of one order; return 0 if the order has ended or another process has locked it."""
    order = _overdue(now).filter(pk=pk).select_for_update(skip_locked=True, no_key=True).first()
    if order is None:
        return 0
    Order.objects.filter(pk=order.pk).update(alarmed_at=now)
    announce(
        "order.overdue",
        now=now,
        customer_id=order.customer_id,
        vll_id=order.vll_id,
        order_id=order.pk,
        data={"state": order.state, "action": order.action},
    )
    return 1
