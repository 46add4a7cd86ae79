"""Under which requests a router's orders came: their ids follow an order through the logs to the agent.

They are read from the orders and do not travel with messages: a message may be lost, repeated or stand for
several orders, and what an intent speaks of is what had been ordered when it was made.
"""

from django.db.models import Q

from portal.inventory.models import Router
from portal.vll.models import Order
from portal.vll.states import TERMINAL_ORDER_STATES

# The newest; an HTTP header holds no more than a few thousand characters.
MOST = 50


def request_ids_of(router: Router) -> list[str]:
    """The request ids of the open orders that concern this router, newest first, each once, at most MOST."""
    open_orders = Order.objects.exclude(state__in=sorted(TERMINAL_ORDER_STATES)).exclude(request_id="")
    here = Q(vll__ends__port__router=router) | Q(vll__tombstones__router=router)
    ids = open_orders.filter(here).order_by("-ordered_at").values_list("request_id", flat=True)
    return list(dict.fromkeys(ids[: 4 * MOST]))[:MOST]
