"""The first page: what the user's customers have, how it is, and what is under way."""

from django.http import HttpResponse
from django.shortcuts import render

from portal.accounts import policies
from portal.vll import queries
from portal.vll.states import TERMINAL_LIFECYCLES, TERMINAL_ORDER_STATES, Lifecycle, OperStatus
from portal.web.access import SignedInRequest, requires
from portal.web.paging import newest_first

OPEN_ORDERS_SHOWN = 10


@requires(policies.may_sign_in)
def overview(request: SignedInRequest) -> HttpResponse:
    """``?show=all`` adds the VLLs that are gone; ``?after=`` pages on."""
    everything = queries.with_last_order(queries.vlls(request.user))
    current = everything.exclude(lifecycle__in=TERMINAL_LIFECYCLES)
    in_service = current.filter(lifecycle=Lifecycle.ACTIVE)
    open_orders = queries.orders(request.user).exclude(state__in=TERMINAL_ORDER_STATES)
    show_all = request.GET.get("show") == "all"
    return render(
        request,
        "overview/overview.html",
        {
            "page": newest_first(
                everything if show_all else current, by="created_at", after=request.GET.get("after", "")
            ),
            "show_all": show_all,
            "may_order": policies.may_order_for_anyone(request.user),
            "active": in_service.count(),
            "up": in_service.filter(oper_status=OperStatus.UP).count(),
            "out_of_sync": in_service.filter(in_sync=False).count(),
            "open_orders": open_orders[:OPEN_ORDERS_SHOWN],
            "open_order_count": open_orders.count(),
        },
    )
