"""The pages for samples in quarantine: their effect on monthly figures, and the NOC's decision."""

from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from portal.accounts import permissions
from portal.core import clock
from portal.telemetry.models import Quarantine
from portal.telemetry.sample_quarantine_decisions import given_up_at, quarantine_accept, quarantine_discard
from portal.telemetry.sample_quarantine_preview import lines_of, month_previews, quarantines, span_of
from portal.web.noc.orders import DiscardForm
from portal.web.page.flash_messages import result_message
from portal.web.page.page_guard import SignedInRequest, requires
from portal.web.page.pagination import in_order

UNPROCESSABLE = 422
# The number of lines per page. It is small, because the whole month of each line is read.
LINES_SHOWN = 10
_LONGEST_NAME = 100


@requires(permissions.may_run_the_network)
def listing(request: SignedInRequest) -> HttpResponse:
    """Show the undecided quarantines, or with ``?decided=1`` the decided quarantines. ``?router=`` filters by
    router.
    """
    decided = request.GET.get("decided") == "1"
    router = request.GET.get("router", "").replace("\0", "")[:_LONGEST_NAME]
    rows = quarantines()
    undecided = {"state": Quarantine.State.UNDECIDED}
    rows = rows.exclude(**undecided) if decided else rows.filter(**undecided)
    if router:
        rows = rows.filter(router__name=router)
    found = in_order(rows, by=("newest_first",), after=request.GET.get("after", ""))
    context = {
        "page": found,
        "rows": [{"quarantine": each, "span": span_of(each)} for each in found.rows],
        "decided": decided,
        "router": router,
        "keep": urlencode(({"decided": 1} if decided else {}) | ({"router": router} if router else {})),
    }
    return render(request, "noc/quarantines.html", context)


@requires(permissions.may_run_the_network)
def page(request: SignedInRequest, quarantine_id: int) -> HttpResponse:
    """Show a quarantine, and the effect of acceptance on the month of each line."""
    return _page(request, _quarantine(quarantine_id))


@requires(permissions.may_run_the_network)
@require_POST
def accept(request: SignedInRequest, quarantine_id: int) -> HttpResponse:
    """Accept the samples of a quarantine. Their times are corrected by the measured clock offset."""
    with result_message(
        request, done=_("Accepted. The samples are being added; final months will be corrected.")
    ):
        quarantine_accept(quarantine=_quarantine(quarantine_id), user=request.user, now=clock.now())
    return redirect("web:noc-quarantine", quarantine_id=quarantine_id)


@requires(permissions.may_run_the_network)
@require_POST
def discard(request: SignedInRequest, quarantine_id: int) -> HttpResponse:
    """Discard the samples of a quarantine. ``reason`` is stored with the decision."""
    found, form = _quarantine(quarantine_id), DiscardForm(request.POST)
    if not form.is_valid():
        return _page(request, found, form, status=UNPROCESSABLE)
    with result_message(request, done=_("Discarded.")):
        quarantine_discard(quarantine=found, user=request.user, now=clock.now(), **form.cleaned_data)
    return redirect("web:noc-quarantine", quarantine_id=quarantine_id)


def _quarantine(quarantine_id: int) -> Quarantine:
    return get_object_or_404(quarantines(), pk=quarantine_id)


def _page(
    request: SignedInRequest, found: Quarantine, form: DiscardForm | None = None, status: int | None = None
) -> HttpResponse:
    lines = in_order(lines_of(found), by=("place",), after=request.GET.get("after", ""), size=LINES_SHOWN)
    context = {
        "quarantine": found,
        "span": span_of(found),
        "is_undecided": found.state == Quarantine.State.UNDECIDED,
        "given_up_at": given_up_at(found),
        "previews": month_previews(quarantine=found, vlls=lines.rows, now=clock.now()),
        "page": lines,
        "examples": found.examples.order_by("pk")[:1],
        "form": form or DiscardForm(),
    }
    return render(request, "noc/quarantine.html", context, status=status)
