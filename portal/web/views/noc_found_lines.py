"""Lines that others made on the routers, joined across their ends."""

from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.accounts import permissions
from portal.inventory.found_lines import circuits_touching, found_circuits, found_lines
from portal.web.access_control import SignedInRequest, requires
from portal.web.pagination import in_order

_LONGEST_NAME = 100


@requires(permissions.may_run_the_network)
@require_safe
def listing(request: SignedInRequest) -> HttpResponse:
    """``?router=`` those with an end on the router of that name; ``?after=`` pages on."""
    router = request.GET.get("router", "").replace("\0", "")[:_LONGEST_NAME]
    circuits = found_circuits()
    if router:
        circuits = circuits_touching(circuits, router)
    page = in_order(circuits, by=("pk",), after=request.GET.get("after", ""))
    context = {
        "page": page,
        "lines": list(found_lines(page.rows)),
        "router": router,
        "keep": urlencode({"router": router}) if router else "",
    }
    return render(request, "noc/found_lines.html", context)
