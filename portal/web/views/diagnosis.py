"""The pages to diagnose a line, to report trouble to the NOC, and to close a trouble report."""

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from portal.accounts import permissions
from portal.core import clock
from portal.diagnosis.diagnosis import diagnosis_of
from portal.diagnosis.models import TroubleReport
from portal.diagnosis.trouble_reports import trouble_close, trouble_report
from portal.vll.models import Vll
from portal.web.flash_messages import result_message
from portal.web.forms.diagnosis import TroubleForm
from portal.web.page_guard import SignedInRequest, requires, visible_vll


@requires(permissions.may_see, of=visible_vll)
def page(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Show the diagnosis of a line.

    A request of htmx gets only the verdict and the checks, for the line's page.
    """
    template = "diagnosis/_diagnosis.html" if request.htmx else "diagnosis/diagnosis.html"
    return render(request, template, _context(request, vll, TroubleForm()))


@requires(permissions.may_see, of=visible_vll)
@require_POST
def report(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Report trouble with a line to the NOC, together with the diagnosis."""
    form = TroubleForm(request.POST)
    if not form.is_valid():
        return render(request, "diagnosis/diagnosis.html", _context(request, vll, form), status=422)
    with result_message(request, done=_("The NOC has been notified.")):
        trouble_report(user=request.user, vll=vll, note=form.cleaned_data["note"], now=clock.now())
    return redirect("web:vll", vll_id=vll.pk)


@requires(permissions.may_run_the_network)
@require_POST
def close(request: SignedInRequest, report_id: UUID) -> HttpResponse:
    """Close a trouble report."""
    found = get_object_or_404(TroubleReport, pk=report_id)
    with result_message(request, done=_("The report is closed.")):
        trouble_close(user=request.user, report=found, now=clock.now())
    return redirect("web:vll", vll_id=found.vll_id)


def _context(request: SignedInRequest, vll: Vll, form: TroubleForm) -> dict[str, Any]:
    return {
        "vll": vll,
        "diagnosis": diagnosis_of(vll, now=clock.now()),
        "form": form,
        "reports": vll.trouble_reports.order_by("-reported_at")[:1],
        "for_noc": request.user.is_noc,
    }
