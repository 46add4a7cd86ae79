"""What the NOC has to look at now."""

from django.http import HttpResponse
from django.shortcuts import render

from portal.accounts import policies
from portal.core import clock
from portal.web.access import SignedInRequest, requires
from portal.web.alarms import alarms
from portal.web.noc_kinds import KINDS


@requires(policies.may_run_the_network)
def overview(request: SignedInRequest) -> HttpResponse:
    """Alarms first; what was looked at and found in order is named too."""
    found = alarms(clock.now())
    context = {
        "kinds": KINDS,
        "alarms": [alarm for alarm in found if alarm.count],
        "in_order": [alarm.title for alarm in found if not alarm.count],
    }
    return render(request, "noc/overview.html", context)
