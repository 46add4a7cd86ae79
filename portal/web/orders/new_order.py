"""The pages to order a VLL, and to list, create, renew and release reservations."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render, resolve_url
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect

from portal.accounts import permissions
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import DomainError
from portal.core.quantities import row_id, uuid_of
from portal.vll import queries
from portal.vll.models import Order, Reservation
from portal.vll.operations.add_line import order_add
from portal.vll.operations.reservations import reservation_make, reservation_release, reservation_renew
from portal.vll.quote import quote
from portal.vll.states import OrderState
from portal.web.orders.order_form import (
    OrderForm,
    like_initial,
    open_reservation,
    port_initial,
    proposed_initial,
    reservation_initial,
    shown_reservation,
    unjudged,
)
from portal.web.orders.order_preview import preview_context
from portal.web.orders.port_choice import port_offer
from portal.web.page.base import SignedInRequest, requires, result_message
from portal.web.page.list_filters import newest_first

UNPROCESSABLE = 422


@requires(permissions.may_order_for_anyone)
@require_http_methods(["GET", "HEAD", "POST"])
def order(request: SignedInRequest) -> HttpResponse:
    """Show the order form (GET), or order a line (POST).

    If the order is refused, the response has status 422 and shows the form with its errors.
    """
    if request.method != "POST" or "find" in request.POST or "any" in request.POST:
        return render(request, "orders/order.html", {"form": order_form(request)})
    form = OrderForm(user=request.user, data=request.POST)
    if "check" in request.POST:
        return render(request, "orders/order.html", {"form": form} | _feasibility(form, request))
    accepted = _submit(form, request)
    if accepted is None:
        template = "orders/_order_form.html" if request.htmx else "orders/order.html"
        return render(
            request, template, {"form": form, "problems": list(form.problems())}, status=UNPROCESSABLE
        )
    if accepted.state == OrderState.PENDING_APPROVAL:
        messages.info(request, _("Your order is waiting for the NOC's approval."))
    else:
        messages.success(request, _("Your order is accepted."))
    target = resolve_url("web:vll", vll_id=accepted.vll_id)
    return HttpResponseClientRedirect(target) if request.htmx else redirect(target)


@requires(permissions.may_order_for_anyone)
@require_http_methods(["GET", "HEAD"])
def ports(request: SignedInRequest) -> HttpResponse:
    """Return the options of an end's port select that match the text in the end's search field.

    With ``?owner=``, only ports of the customer with this id are returned.
    """
    sent = request.GET
    end = "z_end" if "z_end-search" in sent else "a_end"
    search = sent.get(f"{end}-search", "").replace("\0", "").strip()[:100]
    chosen, owner = sent.get(f"{end}-port", ""), row_id(sent.get("owner", ""))
    choices, _more = port_offer(request.user, search=search, chosen=chosen, owner=owner)
    return render(request, "orders/_port_options.html", {"groups": choices, "chosen": chosen})


@requires(permissions.may_order_for_anyone)
@require_POST
def check(request: SignedInRequest) -> HttpResponse:
    """Show whether an order with the entered values would be accepted, and its path. Store nothing."""
    form = OrderForm(user=request.user, data=request.POST)
    return render(request, "orders/_feasibility_answer.html", {"form": form} | _feasibility(form, request))


def _feasibility(form: OrderForm, request: SignedInRequest) -> dict[str, Any]:
    """Return the context of orders/_feasibility.html.

    If the form is not valid, the context has the errors that prevent a preview.
    """
    if not form.is_valid():
        return dict(form.obstacles())
    found = quote(form.spec(), user=request.user, now=clock.now(), reservation=form.reservation_id)
    return preview_context(found, form)


def order_form(request: SignedInRequest) -> OrderForm:
    """Return the order form with initial values.

    The values come from the first of these sources that is given:

    * the values entered so far, when the user searches for a port;
    * the reservation ``?hold=``;
    * the existing line ``?like=``;
    * the port ``?port=`` with the VLAN ``?vlan=``;
    * the portal's proposal.
    """
    sent = request.POST or request.GET
    reserved = open_reservation(request.user, reservation_id := uuid_of(sent.get("hold", "")))
    like_id = uuid_of(sent.get("like", ""))
    like = None if like_id is None else queries.vlls(request.user).filter(pk=like_id).first()
    if request.POST:
        initial: dict[str, dict[str, Any]] | None = unjudged(request.POST)
    elif reserved is not None:
        initial = reservation_initial(reserved)
    elif like is not None:
        initial = like_initial(like)
    elif "port" in sent:
        initial = port_initial(port=sent["port"], vlan=sent.get("vlan", ""))
    else:
        initial = proposed_initial(request.user)
    form = OrderForm(user=request.user, initial=initial)
    form.use_reservation(reservation_id)
    return form


def _submit(form: OrderForm, request: SignedInRequest) -> Order | None:
    """Order the line, and return the accepted order. If it is refused, add the error and return None."""
    if not form.is_valid():
        return None
    try:
        spec = form.spec()
        spec = replace(spec, description=spec.description or form.proposed_name())
        return order_add(
            user=request.user,
            spec=spec,
            now=clock.now(),
            reservation=form.reservation_id,
            refuse_similar="again" not in request.POST,
        )
    except DomainError as error:
        for refusal in _reasons(error, form, request):
            form.refuse(refusal)
        return None


def _reasons(refused: DomainError, form: OrderForm, request: SignedInRequest) -> list[DomainError]:
    """Return the refusal ``refused``, and all other refusals of the order for the same field.

    An order raises only the first refusal. The function gets the other refusals from a quote.
    """
    found = quote(form.spec(), user=request.user, now=clock.now(), reservation=form.reservation_id)
    same = [refusal for refusal in found.refusals if refusal.field == refused.field]
    return same if refused.sentence in [refusal.sentence for refusal in same] else [refused]


def visible_reservation(user: User, reservation_id: UUID) -> Reservation:
    return get_object_or_404(queries.reservations(user, now=clock.now()), pk=reservation_id)


@requires(permissions.may_sign_in)
def reservations(request: SignedInRequest) -> HttpResponse:
    """Show the open reservations of the user's customers, newest first."""
    rows = queries.reservations(request.user, now=clock.now())
    page = newest_first(rows, by="created_at", after=request.GET.get("after", ""))
    context = {"page": page, "reservations": [shown_reservation(row, request.user) for row in page.rows]}
    return render(request, "orders/reservations.html", context)


@requires(permissions.may_order, of=visible_reservation)
@require_POST
def renew(request: SignedInRequest, reservation: Reservation) -> HttpResponse:
    """Renew the reservation, so that it lasts 900 s from now."""
    with result_message(request, done=_("The reservation is renewed.")):
        reservation_renew(user=request.user, reservation=reservation.pk, now=clock.now())
    return redirect("web:reservations")


@requires(permissions.may_order, of=visible_reservation)
@require_POST
def release(request: SignedInRequest, reservation: Reservation) -> HttpResponse:
    """Release the reservation, and with it the VLANs and the bandwidth that it reserves."""
    with result_message(request, done=_("The reservation is released.")):
        reservation_release(user=request.user, reservation=reservation.pk, now=clock.now())
    return redirect("web:reservations")


@requires(permissions.may_order_for_anyone)
@require_POST
def while_ordering(request: SignedInRequest) -> HttpResponse:
    """Make, renew or release a reservation while the user fills in an order form. ``do`` names the action.

    The response is the form with the entered values and its reservation. It has status 422 if the action is
    refused.
    """
    form = OrderForm(user=request.user, data=request.POST)
    status = None
    try:
        if not _done(request, form):
            status = UNPROCESSABLE
    except DomainError as error:
        form.refuse(error)
        status = UNPROCESSABLE
    template = "orders/_order_form.html" if request.htmx else "orders/order.html"
    problems = list(form.problems()) if status else []
    return render(request, template, {"form": form, "problems": problems}, status=status)


def _done(request: SignedInRequest, form: OrderForm) -> bool:
    """Perform the action in ``do``. Return False if the form of a new reservation is not valid."""
    now = clock.now()
    match request.POST.get("do"), form.reservation_id:
        case "renew", UUID() as reservation_id:
            reservation_renew(user=request.user, reservation=reservation_id, now=now)
            form.use_reservation(reservation_id)
        case "release", UUID() as reservation_id:
            reservation_release(user=request.user, reservation=reservation_id, now=now)
            form.use_reservation(None)
        case "make", None:
            if not form.is_valid():
                return False
            spec = form.spec()
            made = reservation_make(
                user=request.user, a_end=spec.a_end, z_end=spec.z_end, cir_bps=spec.cir_bps, now=now
            )
            form.use_reservation(made.pk)
    return True
