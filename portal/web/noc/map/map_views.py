"""The page with the map of the backbone, and with tables of the same routers and links."""

from django.http import HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from portal.accounts import permissions
from portal.core import clock
from portal.inventory.queries import links_at, links_with_observed_mtu
from portal.web.noc.inventory.inventory_kinds import LINKS
from portal.web.noc.map.map_selection import map_selection
from portal.web.noc.map.network_map import LINKS_SHOWN, network_map
from portal.web.page.list_filters import filtered
from portal.web.page.page_guard import SignedInRequest, requires


@requires(permissions.may_run_the_network)
def page(request: SignedInRequest) -> HttpResponse:
    """Show the first ``LINKS_SHOWN`` links that match the search and the filter.

    Without a search or a filter, the map also shows routers without links. The selected line, link or router
    is always shown.
    """
    now = clock.now()
    chosen = map_selection(request.user, request.GET, now=now)
    matching = filtered(links_with_observed_mtu(), request.GET, LINKS.choices)
    links = list(matching.rows.order_by(*LINKS.by)[: LINKS_SHOWN + 1])
    shown = {link.pk: link for link in links[:LINKS_SHOWN]}
    if chosen.is_any:
        others = links_with_observed_mtu().filter(links_at(chosen.link_ids, chosen.router))
        shown |= {link.pk: link for link in others.exclude(pk__in=shown)[:LINKS_SHOWN]}
    query = f"{matching.keep}&" if matching.keep else ""
    context = {
        "filtered": matching,
        "map": network_map(
            list(shown.values()), unlinked=not matching.is_filtered, chosen=chosen, query=query, now=now
        ),
        "chosen": chosen,
        "query": query,
        "shown": LINKS_SHOWN,
        "more": len(links) > LINKS_SHOWN,
    }
    context["drawing"] = render_to_string("noc/_map_drawing.html", context, request)
    context["facts"] = render_to_string("noc/_map_facts.html", context, request)
    return render(request, "noc/_map.html" if request.htmx else "noc/map.html", context)
