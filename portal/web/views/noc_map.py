"""The backbone as a map, and as tables that say the same."""

from django.http import HttpResponse
from django.shortcuts import render

from portal.accounts import permissions
from portal.core import clock
from portal.inventory.queries import links_with_observed_mtu
from portal.web.access_control import SignedInRequest, requires
from portal.web.inventory_kinds import KINDS, LINKS
from portal.web.list_filters import filtered
from portal.web.network_map import LINKS_SHOWN, network_map


@requires(permissions.may_run_the_network)
def page(request: SignedInRequest) -> HttpResponse:
    """The first ``LINKS_SHOWN`` links, as the search and the filter say; without these, lone routers too."""
    looked = filtered(links_with_observed_mtu(), request.GET, LINKS.choices)
    links = list(looked.rows.order_by(*LINKS.by)[: LINKS_SHOWN + 1])
    context = {
        "kinds": KINDS,
        "filtered": looked,
        "map": network_map(links[:LINKS_SHOWN], unlinked=not looked.is_filtered, now=clock.now()),
        "shown": LINKS_SHOWN,
        "more": len(links) > LINKS_SHOWN,
    }
    return render(request, "noc/map.html", context)
