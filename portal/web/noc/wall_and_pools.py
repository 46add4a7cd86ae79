"""The NOC's alarms and lines on a screen on the wall, and the free part of each pool."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from portal.accounts import permissions
from portal.alarms import queries
from portal.alarms.kinds import Severity
from portal.allocation.pool_usage import pools
from portal.core import clock
from portal.core.reader_texts import count_text
from portal.diagnosis.health import HealthState
from portal.vll.models import Order, Vll
from portal.vll.states import Lifecycle, OrderState
from portal.web.page.base import SignedInRequest, requires

# The number of alarms that fit on a screen 768 pixels high, in letters that are legible from five metres.
WORST_SHOWN = 6


# The large figures. UNKNOWN is shown only if there are lines of unknown health.
_FIGURES = (HealthState.UP, HealthState.DEGRADED, HealthState.DOWN, HealthState.UNKNOWN)


@requires(permissions.may_run_the_network)
def wall(request: SignedInRequest) -> HttpResponse:
    """Show the wall view. A request of htmx gets only the live part.

    The live part is sent at each poll, because it shows the time of its data.
    """
    template = "noc/_wall.html" if request.htmx else "noc/wall.html"
    return render(request, template, _wall_context())


def _wall_context() -> dict[str, Any]:
    now = clock.now()
    up, last = queries.tally(now), queries.last_round()
    lines = last.lines if last else {}
    return {
        "last": last,
        "late": queries.is_late(last, now),
        "lines": [
            (state.value, state.label, lines.get(state.value, 0))
            for state in _FIGURES
            if state != HealthState.UNKNOWN or lines.get(state.value)
        ],
        "other_lines": [
            (state.label, lines[state.value])
            for state in HealthState
            if state not in _FIGURES and lines.get(state.value)
        ],
        "suspended": Vll.objects.filter(lifecycle=Lifecycle.SUSPENDED).count(),
        "total": sum(lines.values()),
        "severities": [
            (each, sum(tally.unacknowledged for tally in up if tally.severity == each)) for each in Severity
        ],
        "acknowledged": sum(each.acknowledged for each in up),
        "silenced": sum(each.silenced for each in up),
        "orders_pending_approval": Order.objects.filter(state=OrderState.PENDING_APPROVAL).count(),
        "worst": list(queries.unacknowledged(now)[:WORST_SHOWN]),
        "more": max(0, sum(each.unacknowledged for each in up) - WORST_SHOWN),
    }


@requires(permissions.may_run_the_network)
def pool_page(request: SignedInRequest) -> HttpResponse:
    """Show the leased and the free part of each pool."""
    found = pools()
    counts = found.counts
    free = {"free": count_text(counts.vni_free), "all": count_text(counts.vni_total)}
    leases = [
        ("VNI", counts.vnis, count_text(counts.vni_reserved), _("%(free)s of %(all)s") % free),
        (_("GRE keys"), counts.gre_keys, "–", _("all others of 32 bits")),
        (_("GRE address pairs"), counts.gre_pairs, "–", _("by pair of routers")),
    ]
    return render(request, "noc/pools.html", {"pools": found, "leases": leases})
