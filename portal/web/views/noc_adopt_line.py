"""The pages to adopt a found line, and to release a line from the portal."""

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from portal.accounts import permissions
from portal.core import clock
from portal.core.errors import DomainError
from portal.inventory.found_lines import found_circuits, found_lines
from portal.netbox_sync.l2vpn_proposals import L2vpnProposals
from portal.vll.adoption_differences import FoundPorts
from portal.vll.models import Vll
from portal.vll.operations import Adoption, line_adopt, line_let_go
from portal.web.forms.adoption import AdoptionForm
from portal.web.page_guard import SignedInRequest, requires, visible_vll

_UNPROCESSABLE = 422
_CONFLICT = 409


@requires(permissions.may_remove_from_the_network)
@require_http_methods(["GET", "HEAD", "POST"])
def adopt(request: SignedInRequest, circuit_id: int) -> HttpResponse:
    """Show the form to adopt a found line (GET), or order the adoption (POST).

    If the adoption is refused, the response has status 422 and shows the form with its errors.
    """
    line = next(found_lines(found_circuits().filter(pk=circuit_id)), None)
    if line is None:
        raise Http404
    sent = request.POST if request.method == "POST" else None
    netbox = L2vpnProposals([line]).of(line)
    customer = FoundPorts([line]).customer(line) or (netbox.customer if netbox else "")
    form = AdoptionForm(sent, line=line, customer=customer, user=request.user, netbox=netbox)
    refusal = ""
    if form.is_valid():
        values = {name: form.cleaned_data[name] for name in ("customer", "description", "svc_mtu", "cir_bps")}
        adoption = Adoption(found_line=circuit_id, **values)
        try:
            order = line_adopt(user=request.user, adoption=adoption, now=clock.now())
        except DomainError as error:
            refusal = error.sentence
        else:
            messages.success(request, _("The line is being taken over."))
            return redirect("web:vll", vll_id=order.vll_id)
    status = _UNPROCESSABLE if form.is_bound else 200
    context = {"line": line, "form": form, "refusal": refusal, "netbox": netbox}
    return render(request, "noc/adopt.html", context, status=status)


@requires(permissions.may_let_go, of=visible_vll)
@require_http_methods(["GET", "HEAD", "POST"])
def let_go(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Ask for confirmation (GET), or order the release of a line (POST).

    If the release is refused, the response has status 409 and shows the reason.
    """
    refusal = ""
    if request.method == "POST":
        try:
            line_let_go(user=request.user, vll=vll, now=clock.now())
        except DomainError as error:
            refusal = error.sentence
        else:
            messages.success(request, _("The line is being let go of."))
            return redirect("web:vll", vll_id=vll.pk)
    context = {"vll": vll, "refusal": refusal}
    return render(request, "vll/let_go.html", context, status=_CONFLICT if refusal else None)
