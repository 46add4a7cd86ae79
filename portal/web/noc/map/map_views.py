"""The page with the map of the backbone, and with tables of the same routers and links."""

from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render

from portal.accounts import permissions
from portal.core import clock
from portal.inventory.queries import links_at, links_with_observed_mtu
from portal.web.noc.inventory.inventory_kinds import LINKS
from portal.web.noc.map.map_selection import map_selection
from portal.web.noc.map.network_map import LINKS_SHOWN, network_map
from portal.web.page.list_filters import filtered
from portal.web.page.page_guard import SignedInRequest, requires
from portal.web.page.polling import HTTP_NO_CHANGE, polled_part


@requires(permissions.may_run_the_network)
def page(request: SignedInRequest) -> HttpResponse:
    """Show the first ``LINKS_SHOWN`` links that match the search and the filter.

    Without a search or a filter, the map also shows routers without links. The selected line, link or router
    is always shown. If htmx polls and ``?seen=`` is still current, the status is 204.
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
    drawing = polled_part("noc/_map_drawing.html", context, request)
    facts = polled_part("noc/_map_facts.html", context, request)
    seen = drawing.seen + facts.seen
    if request.htmx and request.GET.get("seen") == seen:
        return HttpResponse(status=HTTP_NO_CHANGE)
    context |= {"drawing": drawing.body, "facts": facts.body}
    context["again"] = f"{query}{chosen.keep}&{urlencode({'seen': seen})}"
    return render(request, "noc/_map.html" if request.htmx else "noc/map.html", context)
