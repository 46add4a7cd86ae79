"""The page with the monthly figures of a line."""

from django.http import HttpResponse
from django.shortcuts import render

from portal.accounts import permissions
from portal.core import clock
from portal.core.replica import from_replica
from portal.telemetry.monthly_figures import months_of
from portal.vll.models import Vll
from portal.web.page_guard import SignedInRequest, requires, visible_vll


@requires(permissions.may_see, of=visible_vll)
def months(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Show the monthly figures of a line. A request of htmx gets only the tables, for the line's page."""
    template = "vll/_months.html" if request.htmx else "vll/months.html"
    months = from_replica(request, lambda: months_of(vll=vll, now=clock.now()))
    return render(request, template, {"vll": vll, "months": months})
