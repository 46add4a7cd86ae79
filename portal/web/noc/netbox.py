"""The page about NetBox: the age of the data, findings, lines with errors, and manual runs."""

from django import template
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from portal.accounts import permissions
from portal.core import clock
from portal.netbox_sync.models import NetboxRun
from portal.netbox_sync.netbox_status import (
    KIND_NAMES,
    PHASES,
    error_sentence,
    finding_sentence,
    last_complete_run,
    lines_in_error,
    netbox_status,
)
from portal.netbox_sync.sync_run import run_request
from portal.web.page.base import SignedInRequest, requires

register = template.Library()
register.filter("netbox_error", error_sentence)
register.filter("netbox_finding", finding_sentence)

# The name of a kind of inventory row, such as "port", and of the phase of a run, such as "Reading devices".
register.filter("netbox_kind", lambda kind: KIND_NAMES.get(kind, kind))
register.filter("netbox_phase", lambda phase: PHASES.get(phase, phase))

RUNS_SHOWN = 20
LINES_SHOWN = 50


@requires(permissions.may_run_the_network)
def page(request: SignedInRequest) -> HttpResponse:
    """Show the state of the synchronization with NetBox.

    The status is 404 if no NetBox is configured.
    """
    status = netbox_status(clock.now())
    if status is None:
        raise Http404
    context = {
        "status": status,
        "last_run": last_complete_run(),
        "runs": NetboxRun.objects.order_by("-id")[:RUNS_SHOWN],
        "lines": lines_in_error()[:LINES_SHOWN],
    }
    part = {
        "live": render_to_string("noc/netbox/_netbox_live.html", context, request),
        "every": "2s" if NetboxRun.objects.filter(finished_at=None).exists() else "15s",
        "may_apply": permissions.may_remove_from_the_network(request.user),
    }
    return render(request, "noc/netbox/_netbox.html" if request.htmx else "noc/netbox/netbox.html", part)


@requires(permissions.may_remove_from_the_network)
@require_POST
def run(request: SignedInRequest) -> HttpResponse:
    """Request a run. ``do``: ``look`` for a dry run, or ``apply``."""
    do = request.POST.get("do", "")
    if do not in ("look", "apply"):
        return HttpResponse(status=400)
    run_request(dry=do == "look", requester=request.user.username, now=clock.now())
    messages.success(request, _("The run has been requested; its result will appear here."))
    return redirect("web:noc-netbox")
