"""What the NOC's navigation counts, and how a plan's values are written."""

from typing import Any

from django import template
from django.template import Context

from portal.vll.models import Order
from portal.vll.states import OrderState

register = template.Library()


@register.simple_tag(takes_context=True)
def held_order_count(context: Context) -> int:
    """How many orders wait for the NOC's approval: the header and the NOC's own navigation say the same."""
    request: Any = context["request"]
    if not hasattr(request, "held_order_count"):
        request.held_order_count = Order.objects.filter(state=OrderState.HELD).count()
    return int(request.held_order_count)


@register.filter
def as_json(value: Any) -> str:
    """``true``, ``null`` and numbers as an intent writes them; a text as it is."""
    if value is None:
        return "–"
    return str(value).lower() if isinstance(value, bool) else str(value)
