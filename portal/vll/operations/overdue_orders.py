"""Telling the NOC about orders that take too long."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models.functions import Coalesce

from portal.events.outbox import announce
from portal.vll.models import Order
from portal.vll.states import TERMINAL_ORDER_STATES, OrderState

# Every accepted order reaches a terminal state or an alarm within this time.
OVERDUE = timedelta(seconds=110)


@transaction.atomic
def orders_overdue_alarm(*, now: datetime) -> int:
    """Raise the alarm once for each order that is open for too long; how many. Held ones wait for a human."""
    overdue = (
        Order.objects.alias(begun_at=Coalesce("approved_at", "ordered_at"))
        .filter(begun_at__lt=now - OVERDUE, alarmed_at__isnull=True)
        .exclude(state__in=[*TERMINAL_ORDER_STATES, OrderState.HELD])
        .select_for_update(skip_locked=True)
    )
    alarmed = 0
    for order in overdue:
        Order.objects.filter(pk=order.pk).update(alarmed_at=now)
        announce(
            "order.overdue",
            now=now,
            customer_id=order.customer_id,
            vll_id=order.vll_id,
            order_id=order.pk,
            data={"state": order.state, "action": order.action},
        )
        alarmed += 1
    return alarmed
