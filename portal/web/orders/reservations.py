"""The pages for reservations: the list of open reservations, and their creation, renewal and release."""

from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from portal.accounts import permissions
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import DomainError
from portal.vll import queries
from portal.vll.models import Reservation
from portal.vll.operations.reservations import reservation_make, reservation_release, reservation_renew
from portal.web.orders.order_form import OrderForm, shown_reservation
from portal.web.page.flash_messages import result_message
from portal.web.page.list_filters import newest_first
from portal.web.page.page_guard import SignedInRequest, requires

UNPROCESSABLE = 422


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
