"""The lists of ports, orders and routers."""

from django.http import HttpResponse
from django.shortcuts import render

from portal.accounts import permissions
from portal.core import clock
from portal.inventory.models import FRESH, Port, Router
from portal.inventory.port_link_state import with_link_speed
from portal.inventory.queries import with_enrolment
from portal.vll import queries
from portal.web.noc.inventory.inventory_kinds import PORTS, ROUTERS
from portal.web.page.list_filters import filtered, of_customer, only_of
from portal.web.page.page_guard import SignedInRequest, requires
from portal.web.page.pagination import in_order, newest_first


@requires(permissions.may_run_the_network)
def routers(request: SignedInRequest) -> HttpResponse:
    """Show the routers that match the search and the filters.

    A router is shown as reporting if its last report is recent enough for the status of its VLLs (FRESH).
    """
    rows = with_enrolment(Router.objects.select_related("site", "observed", "convergence"))
    matching = filtered(rows, request.GET, ROUTERS.choices)
    page = in_order(matching.rows, by=ROUTERS.by, after=request.GET.get("after", ""))
    context = {"routers": page.rows, "page": page, "filtered": matching, "fresh_since": clock.now() - FRESH}
    return render(request, "routers/routers.html", context)


@requires(permissions.may_sign_in)
def ports(request: SignedInRequest) -> HttpResponse:
    """Show the ports of the user's customers with their booked bandwidth.

    ``?customer=`` selects one customer.
    """
    rows = with_link_speed(Port.objects.visible_to(request.user).select_related("router__site", "customer"))
    customer = of_customer(request.user, request.GET)
    matching = filtered(rows, request.GET, (only_of(customer),) if customer else ())
    page = in_order(matching.rows, by=PORTS.by, after=request.GET.get("after", ""))
    return render(request, "ports/ports.html", {"ports": page.rows, "page": page, "filtered": matching})


@requires(permissions.may_sign_in)
def orders(request: SignedInRequest) -> HttpResponse:
    """Show the orders of the user's customers, newest first. ``?customer=`` selects one customer."""
    rows, customer = queries.orders(request.user), of_customer(request.user, request.GET)
    if customer is not None:
        rows = rows.filter(customer=customer)
    keep = "" if customer is None else f"customer={customer.pk}"
    page = newest_first(rows, by="ordered_at", after=request.GET.get("after", ""))
    return render(request, "orders/orders.html", {"page": page, "customer": customer, "keep": keep})
