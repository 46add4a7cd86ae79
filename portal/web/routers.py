"""The NOC's list of routers, with the state of each agent and its reports."""

from django.http import HttpResponse
from django.shortcuts import render

from portal.accounts import permissions
from portal.core import clock
from portal.inventory.models import FRESH, Router
from portal.inventory.queries import with_enrolment
from portal.web.noc.inventory.inventory_kinds import ROUTERS
from portal.web.page.list_filters import filtered
from portal.web.page.page_guard import SignedInRequest, requires
from portal.web.page.pagination import in_order


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
