"""Lines that the agents found on routers: the list, its filters, and template tags."""

from dataclasses import replace

from django import template
from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from portal.accounts import permissions
from portal.inventory.found_lines import (
    FOUND_LINE_FILTERS,
    FoundLine,
    Standing,
    circuits_named,
    found_circuits,
    found_lines,
)
from portal.netbox_sync.l2vpn_proposals import L2vpnProposals
from portal.web.page.badges import badge_markup
from portal.web.page.list_filters import ListFilters, filtered, in_order
from portal.web.page.page_guard import SignedInRequest, requires

_LONGEST_NAME = 100


def found_line_filters(query: QueryDict) -> ListFilters:
    """Return the filters of a request.

    ``?q=`` (search) and ``?standing=`` (status) come from the form. ``?router=`` selects the lines with an
    end on the router with that name; the form shows this filter only then.
    """
    router = query.get("router", "").replace("\0", "")[:_LONGEST_NAME]
    filters = [
        replace(each, label=_("Router"), options=lambda: [(router, router)])
        if router and each.name == "router"
        else each
        for each in FOUND_LINE_FILTERS
    ]
    return filtered(found_circuits(), query, filters, search=circuits_named)


register = template.Library()

_TONES = {
    Standing.ONE_SIDED: "danger",
    Standing.ONE_DIRECTIONAL: "danger",
    Standing.MISMATCHED: "warning",
    Standing.COMPLETE: "success",
}


@register.simple_tag
def standing(line: FoundLine) -> SafeString:
    """Return the badge of a found line's standing, such as "Complete"."""
    return badge_markup(line.standing.label, _TONES[line.standing])


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
