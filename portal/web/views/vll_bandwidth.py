"""The page to change only the bandwidth of a line."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from portal.accounts import permissions
from portal.core import clock
from portal.core.errors import DomainError
from portal.vll.models import Vll
from portal.vll.operations import Changes, order_modify
from portal.web.forms.bandwidth import OtherBandwidthForm
from portal.web.page_guard import SignedInRequest, requires, visible_vll

UNPROCESSABLE = 422


@requires(permissions.may_order, of=visible_vll)
@require_http_methods(["GET", "HEAD", "POST"])
def bandwidth(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Show the form with the line's bandwidth (GET), or order another bandwidth (POST).

    If the order is refused, the response has status 422 and shows the error next to the field.
    """
    data = request.POST if request.method == "POST" else None
    form = OtherBandwidthForm(data, cir_bps=vll.cir_bps, customer=vll.customer)
    if form.is_valid():
        changes = Changes(cir_bps=form.cleaned_data["cir_bps"])
        try:
            order_modify(user=request.user, vll=vll, changes=changes, now=clock.now())
        except DomainError as error:
            form.add_error("cir", error.sentence)
        else:
            messages.success(request, _("The new bandwidth is ordered."))
            return redirect("web:vll", vll_id=vll.pk)
    status = UNPROCESSABLE if form.is_bound else 200
    return render(request, "vll/bandwidth.html", {"vll": vll, "bandwidth": form}, status=status)
