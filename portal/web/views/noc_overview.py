"""What the NOC has to look at now."""

from django.db.models import F
from django.http import HttpResponse
from django.shortcuts import render

from portal.accounts import policies
from portal.core import clock
from portal.inventory.models import Router
from portal.inventory.queries import interface_missing, links_with_observed_mtu, mtu_mismatch
from portal.vll.models import Order, Vll
from portal.vll.operations.observe import FRESH
from portal.vll.states import TERMINAL_ORDER_STATES, Lifecycle, OperStatus
from portal.web.access import SignedInRequest, requires
from portal.web.noc_kinds import KINDS

# More than these do not help anybody at once; the counts are whole.
SHOWN = 50


@requires(policies.may_run_the_network)
def overview(request: SignedInRequest) -> HttpResponse:
    """Alarms, each until its cause is gone."""
    with_agent = Router.objects.exclude(agent_url="").select_related("observed").order_by("name")
    fresh_since = clock.now() - FRESH
    active = Vll.objects.filter(lifecycle=Lifecycle.ACTIVE).select_related("customer").order_by("-created_at")
    open_orders = Order.objects.exclude(state__in=TERMINAL_ORDER_STATES).select_related("vll", "customer")
    down, drifted = active.filter(oper_status=OperStatus.DOWN), active.filter(in_sync=False)
    overdue = open_orders.filter(alarmed_at__isnull=False).order_by("ordered_at")
    links = list(links_with_observed_mtu())
    context = {
        "kinds": KINDS,
        "overdue": overdue[:SHOWN],
        "silent": with_agent.exclude(observed__reported_at__gte=fresh_since),
        "behind": with_agent.filter(observed__generation_held__gt=F("generation")),
        "withheld": Router.objects.exclude(held_since=None, maintenance_since=None).order_by("name"),
        "down": down[:SHOWN],
        "drifted": drifted[:SHOWN],
        "mismatched": [link for link in links if mtu_mismatch(link)],
        "missing": [link for link in links if interface_missing(link)],
        "counts": {"overdue": overdue.count(), "down": down.count(), "drifted": drifted.count()},
    }
    return render(request, "noc/overview.html", context)
