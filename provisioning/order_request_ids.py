"""The request ids of a router's orders. The logs of the portal and of the agent contain them.

The ids are read from the orders and are not part of messages. A message may be lost or repeated, or serve
several orders. An intent contains all orders that were accepted before it.
"""

from django.db.models import Q

from portal.inventory.models import Router
from portal.vll.models import Order
from portal.vll.states import TERMINAL_ORDER_STATES

# Only the newest ids are sent, because an HTTP header has room for a few thousand characters.
MOST = 50


def request_ids_of(router: Router) -> list[str]:
    """Return at most MOST different request ids of the open orders of this router, newest first."""
    open_orders = Order.objects.exclude(state__in=sorted(TERMINAL_ORDER_STATES)).exclude(request_id="")
    here = Q(vll__ends__port__router=router) | Q(vll__tombstones__router=router)
    ids = open_orders.filter(here).order_by("-ordered_at").values_list("request_id", flat=True)
    return list(dict.fromkeys(ids[: 4 * MOST]))[:MOST]
