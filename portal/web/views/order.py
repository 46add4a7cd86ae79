"""Ordering a VLL: one page, one form."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect

from portal.accounts import policies
from portal.core import clock
from portal.core.errors import DomainError
from portal.vll import words
from portal.vll.models import Order
from portal.vll.operations import order_add
from portal.vll.outlook import outlook
from portal.web.access import SignedInRequest, requires
from portal.web.forms.order import OrderForm

UNPROCESSABLE = 422


@requires(policies.may_order_for_anyone)
@require_http_methods(["GET", "HEAD", "POST"])
def order(request: SignedInRequest) -> HttpResponse:
    """GET shows the form; POST orders, or answers 422 with the form and what is wrong with it."""
    if request.method != "POST":
        return render(request, "orders/order.html", {"form": OrderForm(user=request.user)})
    form = OrderForm(user=request.user, data=request.POST)
    accepted = _submit(form, request)
    if accepted is None:
        template = "orders/_order_form.html" if request.htmx else "orders/order.html"
        return render(
            request, template, {"form": form, "problems": list(form.problems())}, status=UNPROCESSABLE
        )
    messages.success(request, _("Your order is accepted."))
    target = resolve_url("web:vll", vll_id=accepted.vll_id)
    return HttpResponseClientRedirect(target) if request.htmx else redirect(target)


@requires(policies.may_order_for_anyone)
@require_POST
def check(request: SignedInRequest) -> HttpResponse:
    """Whether the form as it stands would be accepted; nothing is written, and half a form says nothing."""
    form = OrderForm(user=request.user, data=request.POST)
    if not form.is_valid():
        return HttpResponse()
    found = outlook(user=request.user, request=form.asked(), now=clock.now())
    reasons = [words.sentence(refusal) for refusal in found.refusals]
    return render(request, "orders/_serviceability.html", {"outlook": found, "reasons": reasons})


def _submit(form: OrderForm, request: SignedInRequest) -> Order | None:
    """The accepted order, or None with the refusal noted in the form."""
    if not form.is_valid():
        return None
    try:
        return order_add(user=request.user, now=clock.now(), **form.wanted())
    except DomainError as error:
        form.refuse(error)
        return None
