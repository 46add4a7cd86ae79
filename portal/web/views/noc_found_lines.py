"""The list of found lines: lines that the portal does not manage, joined from circuits on routers."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.accounts import permissions
from portal.inventory.found_lines import found_lines
from portal.netbox_sync.l2vpn_proposals import L2vpnProposals
from portal.web.found_line_filters import found_line_filters
from portal.web.page_guard import SignedInRequest, requires
from portal.web.pagination import in_order


@requires(permissions.may_run_the_network)
@require_safe
def listing(request: SignedInRequest) -> HttpResponse:
    """Show the found lines that match the filters (``found_line_filters``).

    ``?after=`` is the cursor for further pages.
    """
    found = found_line_filters(request.GET)
    page = in_order(found.rows, by=("pk",), after=request.GET.get("after", ""))
    lines = list(found_lines(page.rows))
    netbox = L2vpnProposals(lines)
    context = {
        "filtered": found,
        "page": page,
        "lines": [(line, netbox.of(line)) for line in lines],
        "keep": found.keep,
    }
    return render(request, "noc/found_lines.html", context)
