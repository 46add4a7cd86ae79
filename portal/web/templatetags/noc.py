"""What the NOC's navigation counts, and how a plan's values are written."""

from typing import Any

from django import template

from portal.vll.models import Order
from portal.vll.states import OrderState

register = template.Library()


@register.simple_tag
def held_order_count() -> int:
    """How many orders wait for the NOC's approval."""
    return Order.objects.filter(state=OrderState.HELD).count()


@register.filter
def as_json(value: Any) -> str:
    """``true``, ``null`` and numbers as an intent writes them; a text as it is."""
    if value is None:
        return "–"
    return str(value).lower() if isinstance(value, bool) else str(value)
