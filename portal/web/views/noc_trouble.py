"""The list of open trouble reports."""

from django.http import HttpResponse
from django.shortcuts import render

from portal.accounts import permissions
from portal.diagnosis.models import TroubleReport
from portal.web.page_guard import SignedInRequest, requires
from portal.web.pagination import newest_first


@requires(permissions.may_run_the_network)
def listing(request: SignedInRequest) -> HttpResponse:
    """Show the open trouble reports, newest first.

    Each has a link to the diagnosis of its line, where the NOC can close the report.
    """
    reports = TroubleReport.objects.filter(closed_at__isnull=True).select_related("customer", "vll")
    page = newest_first(reports, by="reported_at", after=request.GET.get("after", ""))
    return render(request, "noc/trouble.html", {"page": page})
