"""The NOC's overview: all alarms."""

from django.http import HttpResponse
from django.shortcuts import render

from portal.accounts import permissions
from portal.core import clock
from portal.web.access_control import SignedInRequest, requires
from portal.web.noc_alarms import alarms
from portal.web.polling import HTTP_NO_CHANGE, polled_part


@requires(permissions.may_run_the_network)
def overview(request: SignedInRequest) -> HttpResponse:
    """Alarms first; what was looked at and found in order is named too. 204 when ``?seen=`` is still true."""
    found = alarms(clock.now())
    context = {
        "alarms": [alarm for alarm in found if alarm.count],
        "in_order": [alarm.title for alarm in found if not alarm.count],
    }
    live = polled_part("noc/_alarm_list.html", context, request)
    if request.htmx and request.GET.get("seen") == live.seen:
        return HttpResponse(status=HTTP_NO_CHANGE)
    template = "noc/_alarms.html" if request.htmx else "noc/overview.html"
    return render(request, template, {"live": live, **context})
