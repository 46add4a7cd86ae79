"""The NOC's overview: the active alarms."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render

from portal.accounts import permissions
from portal.alarms import queries, sentences
from portal.alarms.kinds import Kind
from portal.core import clock
from portal.web.page_guard import SignedInRequest, requires
from portal.web.polling import HTTP_NO_CHANGE, polled_part

# The maximum number of alarms in each list. The counts include all alarms, and the history lists all.
SHOWN = 50


@requires(permissions.may_run_the_network)
def overview(request: SignedInRequest) -> HttpResponse:
    """Show the active alarms, unacknowledged alarms first, and the kinds of alarms that are not active.

    If htmx polls and ``?seen=`` is still current, the status is 204.
    """
    live = polled_part("noc/_alarm_list.html", _context(), request)
    if request.htmx and request.GET.get("seen") == live.seen:
        return HttpResponse(status=HTTP_NO_CHANGE)
    template = "noc/_alarms.html" if request.htmx else "noc/overview.html"
    return render(request, template, {"live": live})


def alarm_list(request: SignedInRequest) -> HttpResponse:
    """Return the live part of the page. htmx gets it after an action on an alarm in the list."""
    live = polled_part("noc/_alarm_list.html", _context(), request)
    return render(request, "noc/_alarms.html", {"live": live, "with_messages": True})


def _context() -> dict[str, Any]:
    now = clock.now()
    up, last = queries.tally(now), queries.last_round()
    unacknowledged = sum(each.unacknowledged for each in up)
    acknowledged = sum(each.acknowledged for each in up)
    silenced = sum(each.silenced for each in up)
    unchecked = last.unchecked_kinds if last else []
    return {
        "last": last,
        "late": queries.is_late(last, now),
        "unchecked": [sentences.kind_label(kind) for kind in unchecked],
        "unacknowledged": queries.unacknowledged(now)[:SHOWN] if unacknowledged else [],
        "unacknowledged_count": unacknowledged,
        "acknowledged": queries.acknowledged(now)[:SHOWN] if acknowledged else [],
        "acknowledged_count": acknowledged,
        "silenced": queries.silenced(now)[:SHOWN] if silenced else [],
        "silenced_count": silenced,
        "shown": SHOWN,
        "in_order": [
            kind.label for kind in Kind if kind not in {each.kind for each in up} and kind not in unchecked
        ]
        if last
        else [],
    }
