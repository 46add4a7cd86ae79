"""The first page after signing in: the lines of the user's customers, their health, and open orders."""

from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render

from portal.accounts import permissions
from portal.accounts.tenant_ids import customers_named
from portal.core import clock
from portal.diagnosis.health import HealthState, troubled_paths, with_health
from portal.diagnosis.health_queries import in_service_counts
from portal.inventory.models import Port
from portal.telemetry.last_hour import recent_of
from portal.telemetry.time_spans import last_month
from portal.vll import queries
from portal.vll.models import Order
from portal.vll.states import TERMINAL_LIFECYCLES, TERMINAL_ORDER_STATES, OrderState
from portal.web.line_problems import Trouble, attention, lines_with
from portal.web.page_guard import SignedInRequest, requires
from portal.web.pagination import newest_first
from portal.web.polling import HTTP_NO_CHANGE, polled_part
from portal.web.sparkline import sparkline_of

OPEN_ORDERS_SHOWN = 10
# The health states that a line in service can have while it is not in sync. In the table of
# portal.diagnosis.health, "down" and "unknown" take precedence over "degraded".
_MAY_BE_OUT_OF_SYNC = {HealthState.DOWN, HealthState.UNKNOWN, HealthState.DEGRADED}


@requires(permissions.may_sign_in)
def overview(request: SignedInRequest) -> HttpResponse:
    """Show the lines of the user's customers.

    ``?show=all`` adds removed lines. ``?trouble=`` filters by a kind of problem. ``?after=`` is the cursor
    for further pages. If htmx polls and ``?seen=`` is still current, the status is 204.
    """
    mine = customers_named(request.user)
    everything = queries.vlls(request.user).filter(mine)
    current = everything.exclude(lifecycle__in=TERMINAL_LIFECYCLES)
    open_orders = queries.orders(request.user).filter(mine).exclude(state__in=TERMINAL_ORDER_STATES)
    show_all = request.GET.get("show") == "all"
    now = clock.now()
    # Read the orders before the lines. If an order has ended, its line is then read with the result of the
    # order.
    orders = list(open_orders[:OPEN_ORDERS_SHOWN])
    listed = everything if show_all else current
    trouble = next((each for each in Trouble if each.value == request.GET.get("trouble")), None)
    if trouble is not None:
        listed = lines_with(trouble, everything, request.user, now=now)
    page = newest_first(listed, by="created_at", after=request.GET.get("after", ""))
    troubled = list(troubled_paths())
    with_health(page.rows, troubled=troubled)
    may_order = permissions.may_order_for_anyone(request.user)
    # If there are lines, there are also ports. So the query is needed only without lines.
    lacks_ports = may_order and not page.rows and not Port.objects.visible_to(request.user).exists()
    carrying = [vll.pk for vll in page.rows if vll.lifecycle not in TERMINAL_LIFECYCLES]
    recent = recent_of(carrying, now=now)
    counts = in_service_counts(everything, troubled=troubled)
    context = {
        "page": page,
        "traffic": {pk: sparkline_of(each) for pk, each in recent.items()},
        "attention": attention(
            request.user,
            down=counts.get(HealthState.DOWN, 0) > 0,
            out_of_sync=bool(counts.keys() & _MAY_BE_OUT_OF_SYNC),
            now=now,
        ),
        "show_all": show_all,
        "trouble": trouble,
        "may_order": may_order,
        "lacks_ports": lacks_ports,
        "active": sum(counts.values()),
        "up": counts.get(HealthState.UP, 0),
        "open_orders": orders,
        "open_order_count": open_orders.count(),
        "last_month": last_month(now),
    }
    live = polled_part("overview/_live.html", context, request)
    if request.htmx and request.GET.get("seen") == live.seen:
        return HttpResponse(status=HTTP_NO_CHANGE)
    template = "overview/_overview.html" if request.htmx else "overview/overview.html"
    return render(
        request, template, {**context, "live": live, "moving": _moving(orders), "keep": _keep(request)}
    )


def _moving(orders: list[Order]) -> bool:
    """Return whether at least one of these orders proceeds without the NOC's approval."""
    return any(order.state != OrderState.PENDING_APPROVAL for order in orders)


def _keep(request: SignedInRequest) -> str:
    """Return the parameters of the request that the live part keeps in its own requests."""
    names = ("show", "trouble", "after")
    return urlencode({name: request.GET[name] for name in names if name in request.GET})
