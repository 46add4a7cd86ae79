"""Adopt a found line, and release an adopted one."""

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
    """GET shows a form for name and terms; POST orders the adoption, or responds 422."""
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
    """GET shows a confirmation; POST orders the release, or responds 409 with the reason."""
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
