"""The diagnosis of a line, and trouble reports."""

from typing import Any
from uuid import UUID

from django import forms, template
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from portal.accounts import permissions
from portal.core import clock
from portal.diagnosis.diagnosis import diagnosis_of, stored_sentence
from portal.diagnosis.models import TroubleReport
from portal.diagnosis.trouble_reports import trouble_close, trouble_report
from portal.vll.models import Vll
from portal.web.fields.base import TablerForm
from portal.web.page.base import SignedInRequest, requires, result_message, visible_vll
from portal.web.page.list_filters import newest_first


class TroubleForm(TablerForm):
    """The user's description of the trouble. The portal adds its diagnosis automatically."""

    note = forms.CharField(
        label=_("What do you see?"),
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("The verdict and all checks go to the NOC with it."),
    )


register = template.Library()


@register.filter
def verdict_then(report: TroubleReport) -> str:
    """Return the sentence of the diagnosis at the time of the trouble report."""
    return stored_sentence(report.finding["verdict"], report.finding.get("facts"))


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
    with result_message(request, done=gettext("The NOC has been notified.")):
        trouble_report(user=request.user, vll=vll, note=form.cleaned_data["note"], now=clock.now())
    return redirect("web:vll", vll_id=vll.pk)


@requires(permissions.may_run_the_network)
@require_POST
def close(request: SignedInRequest, report_id: UUID) -> HttpResponse:
    """Close a trouble report."""
    found = get_object_or_404(TroubleReport, pk=report_id)
    with result_message(request, done=gettext("The report is closed.")):
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


@requires(permissions.may_run_the_network)
def listing(request: SignedInRequest) -> HttpResponse:
    """Show the open trouble reports, newest first.

    Each has a link to the diagnosis of its line, where the NOC can close the report.
    """
    reports = TroubleReport.objects.filter(closed_at__isnull=True).select_related("customer", "vll")
    page = newest_first(reports, by="reported_at", after=request.GET.get("after", ""))
    return render(request, "noc/trouble.html", {"page": page})
