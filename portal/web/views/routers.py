"""The NOC's list of routers: what each agent holds, applied and last said."""

from django.http import HttpResponse
from django.shortcuts import render

from portal.accounts import policies
from portal.core import clock
from portal.inventory.models import Router
from portal.vll.operations.observe import FRESH
from portal.web.access import SignedInRequest, requires


@requires(policies.may_run_the_network)
def routers(request: SignedInRequest) -> HttpResponse:
    """A router is fresh while its reports are young enough to know the status of its VLLs by."""
    rows = Router.objects.select_related("site", "observed", "convergence").order_by("name")
    return render(request, "routers/routers.html", {"routers": rows, "fresh_since": clock.now() - FRESH})
