"""Lines that the agents found on routers: the list, its filters, and template tags."""

from typing import Any

from django import template
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from portal.accounts import permissions
from portal.inventory.found_lines import (
    FoundLine,
    Standing,
    circuits_named,
    circuits_touching,
    circuits_where,
    found_circuits,
    found_lines,
)
from portal.netbox_sync.l2vpn_proposals import L2vpnProposals
from portal.web.page.badges import badge_markup
from portal.web.page.list_filters import Choice, ListFilters, filtered, in_order
from portal.web.page.page_guard import SignedInRequest, requires

_LONGEST_NAME = 100
_ADOPTABLE = "adoptable"
# The label of each standing, and the tone of its badge.
STANDINGS: dict[Standing, tuple[Any, str]] = {
    Standing.ONE_SIDED: (_("One-sided"), "danger"),
    Standing.ONE_DIRECTIONAL: (_("One direction only"), "danger"),
    Standing.MISMATCHED: (_("Mismatched"), "warning"),
    Standing.COMPLETE: (_("Complete"), "success"),
}


def found_line_filters(query: QueryDict) -> ListFilters:
    """Return the filters of a request.

    ``?q=`` (search) and ``?standing=`` (status) come from the form. ``?router=`` selects the lines with an
    end on the router with that name.
    """
    router = query.get("router", "").replace("\0", "")[:_LONGEST_NAME]
    choices = [Choice("standing", _("Status"), _options, _narrowed)]
    if router:
        choices.append(Choice("router", _("Router"), lambda: [(router, router)], circuits_touching))
    return filtered(found_circuits(), query, tuple(choices), search=circuits_named)


def _options() -> list[tuple[str, Any]]:
    return [
        (_ADOPTABLE, _("Can be taken over")),
        *((value, label) for value, (label, _tone) in STANDINGS.items()),
    ]


def _narrowed(circuits: QuerySet[Any], value: str) -> QuerySet[Any]:
    if value == _ADOPTABLE:
        return circuits_where(circuits, lambda line: line.may_be_adopted)
    return circuits_where(circuits, lambda line: line.standing == value)


register = template.Library()


@register.simple_tag
def standing(line: FoundLine) -> SafeString:
    """Return the badge of a found line's standing, such as "Complete"."""
    return badge_markup(*STANDINGS[line.standing])


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
