"""The pages for holds: the list of open holds, and requests to make, renew and release holds."""

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
from portal.vll.models import Hold
from portal.vll.operations import hold_make, hold_release, hold_renew
from portal.web.flash_messages import result_message
from portal.web.forms.order import OrderForm
from portal.web.hold_rows import held_of
from portal.web.page_guard import SignedInRequest, requires
from portal.web.pagination import newest_first

UNPROCESSABLE = 422


def visible_hold(user: User, hold_id: UUID) -> Hold:
    return get_object_or_404(queries.holds(user, now=clock.now()), pk=hold_id)


@requires(permissions.may_sign_in)
def holds(request: SignedInRequest) -> HttpResponse:
    """Show the open holds of the user's customers, newest first."""
    rows = queries.holds(request.user, now=clock.now())
    page = newest_first(rows, by="created_at", after=request.GET.get("after", ""))
    context = {"page": page, "holds": [held_of(hold, request.user) for hold in page.rows]}
    return render(request, "orders/holds.html", context)


@requires(permissions.may_order, of=visible_hold)
@require_POST
def renew(request: SignedInRequest, hold: Hold) -> HttpResponse:
    """Renew the hold, so that it lasts 900 s from now."""
    with result_message(request, done=_("The hold is renewed.")):
        hold_renew(user=request.user, hold=hold.pk, now=clock.now())
    return redirect("web:holds")


@requires(permissions.may_order, of=visible_hold)
@require_POST
def release(request: SignedInRequest, hold: Hold) -> HttpResponse:
    """Release the hold, and with it the VLANs and the bandwidth that it reserves."""
    with result_message(request, done=_("The hold is released.")):
        hold_release(user=request.user, hold=hold.pk, now=clock.now())
    return redirect("web:holds")


@requires(permissions.may_order_for_anyone)
@require_POST
def while_ordering(request: SignedInRequest) -> HttpResponse:
    """Make, renew or release a hold while the user fills in an order form. ``do`` names the action.

    The response is the form with the entered values and its hold. It has status 422 if the action is refused.
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
    """Perform the action in ``do``. Return False if a hold cannot be made because the form is not valid."""
    now = clock.now()
    match request.POST.get("do"), form.hold_id:
        case "renew", UUID() as hold_id:
            hold_renew(user=request.user, hold=hold_id, now=now)
            form.use_hold(hold_id)
        case "release", UUID() as hold_id:
            hold_release(user=request.user, hold=hold_id, now=now)
            form.use_hold(None)
        case "make", None:
            if not form.is_valid():
                return False
            wanted = form.wanted()
            content = {name: wanted[name] for name in ("a_end", "z_end", "cir_bps")}
            form.use_hold(hold_make(user=request.user, now=now, **content).pk)
    return True
