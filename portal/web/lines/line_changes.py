"""The orders for an existing line: the pages to change and to remove it, and the buttons on its page.

An immediate removal needs a second confirmation.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts import permissions
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import DomainError
from portal.core.reader_texts import lasting_text, moment_text
from portal.vll import queries
from portal.vll.errors import NothingToChange
from portal.vll.models import Vll
from portal.vll.operations.line_removal import agreed_cooling_off, order_delete, order_restore
from portal.vll.operations.modify_line import order_modify, order_resume, order_suspend, vll_describe
from portal.vll.operations.order_endings import order_cancel
from portal.vll.operations.retry_order import order_retry
from portal.vll.states import IN_SERVICE
from portal.web.lines.bandwidth_form import OtherBandwidthForm
from portal.web.lines.change_form import ChangeForm
from portal.web.orders.order_preview import change_feasibility_context
from portal.web.page.base import SignedInRequest, requires, result_message, visible_vll

_AT_ONCE = timedelta(0)
_OTHERS = (timedelta(days=1), timedelta(days=7), timedelta(days=30))


@dataclass(frozen=True, slots=True)
class CoolingOff:
    """A cooling-off that the user can choose. ``value``: its seconds, as the form sends them.

    ``agreed``: whether this is the cooling-off that the customer or the settings define.
    """

    lasts: timedelta
    until: datetime
    agreed: bool

    @property
    def value(self) -> str:
        return str(int(self.lasts.total_seconds()))

    @property
    def at_once(self) -> bool:
        return self.lasts == _AT_ONCE

    @property
    def text(self) -> str:
        """The duration as text, such as ``7 days`` or ``2 h``."""
        days, rest = divmod(self.lasts, timedelta(days=1))
        if rest:
            return lasting_text(self.lasts.total_seconds())
        return ngettext("{n} day", "{n} days", days).format(n=days)


@requires(permissions.may_order, of=visible_vll)
def remove(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Ask for confirmation (GET), or order the removal (POST).

    For an immediate removal, ``for_good`` must be set too. Without it, the status is 422. If the removal is
    refused, the status is 409.
    """
    now, refusal, unsure = clock.now(), "", False
    choices = _choices(vll, now)
    chosen = next((each for each in choices if each.value == request.POST.get("cooling_off")), choices[0])
    if request.method == "POST":
        unsure = chosen.at_once and not request.POST.get("for_good")
        if not unsure:
            try:
                order_delete(user=request.user, vll=vll, now=now, cooling_off=chosen.lasts)
            except DomainError as error:
                refusal = error.sentence
            else:
                messages.success(request, _confirmation(chosen))
                return redirect("web:vll", vll_id=vll.pk)
    context = {"vll": vll, "choices": choices, "chosen": chosen, "refusal": refusal, "unsure": unsure}
    return render(request, "vll/remove.html", context, status=409 if refusal else 422 if unsure else None)


def _choices(vll: Vll, now: datetime) -> list[CoolingOff]:
    """Return the cooling-offs that the user can choose. The agreed cooling-off is first.

    If the line is not in service, or already in its cooling-off, only an immediate removal is possible.
    """
    if vll.lifecycle not in IN_SERVICE:
        return [CoolingOff(_AT_ONCE, now, agreed=False)]
    agreed = agreed_cooling_off(vll.customer)
    lasting = [agreed, *(each for each in (*_OTHERS, _AT_ONCE) if each != agreed)]
    return [CoolingOff(each, now + each, agreed=each == agreed) for each in lasting]


def _confirmation(chosen: CoolingOff) -> str:
    if chosen.at_once:
        return _("The removal is ordered.")
    return _("The traffic is being stopped. You can undo the removal here until {until}.").format(
        until=moment_text(chosen.until)
    )


UNPROCESSABLE, CONFLICT = 422, 409


@requires(permissions.may_order, of=visible_vll)
def change(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Show the form with the ordered values of the line (GET), or order the differences (POST).

    If the order is refused, the response has status 422 and shows the form with its errors. If somebody else
    has changed the description since the form was opened, the status is 409.
    """
    if request.method != "POST":
        return render(
            request, "vll/change.html", {"vll": vll, "form": ChangeForm(user=request.user, vll=vll)}
        )
    if "find" in request.POST or "any" in request.POST:
        again = ChangeForm(user=request.user, vll=vll, written=request.POST)
        return render(request, "vll/change.html", {"vll": vll, "form": again})
    form = ChangeForm(user=request.user, vll=vll, data=request.POST)
    if "check" in request.POST:
        return render(
            request, "vll/change.html", {"vll": vll, "form": form} | _feasibility(form, request, vll)
        )
    status = UNPROCESSABLE
    if form.is_valid() and form.is_outdated(vll):
        form.refuse_as_outdated(vll)
        status = CONFLICT
    elif form.is_valid():
        try:
            done = _change(request.user, vll, form)
        except DomainError as error:
            form.refuse(error)
        else:
            messages.success(request, done)
            return redirect("web:vll", vll_id=vll.pk)
    context = {"vll": vll, "form": form, "problems": list(form.problems())}
    return render(request, "vll/change.html", context, status=status)


@requires(permissions.may_order, of=visible_vll)
@require_POST
def change_check(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Show whether a change to the entered values is possible. Store nothing."""
    form = ChangeForm(user=request.user, vll=vll, data=request.POST)
    context = {"form": form} | _feasibility(form, request, vll)
    return render(request, "orders/_feasibility_answer.html", context)


def _feasibility(form: ChangeForm, request: SignedInRequest, vll: Vll) -> dict[str, Any]:
    """Return the context of orders/_feasibility.html.

    If the form is not valid, the context has the errors that prevent a preview.
    """
    if not form.is_valid():
        return dict(form.obstacles())
    return change_feasibility_context(form, request.user, vll)


def _change(user: User, vll: Vll, form: ChangeForm) -> str:
    """Order the differences, and return the message for the user.

    If only the description differs, it is changed without an order.
    """
    changes = form.changes()
    try:
        order_modify(user=user, vll=vll, changes=changes, now=clock.now(), expected_revision=form.revision)
    except NothingToChange:
        if changes.get("description", vll.description) == vll.description:
            raise
        vll_describe(user=user, vll=vll, description=changes["description"], now=clock.now())
        return _("The new description is saved.")
    return _("The change is ordered.")


@requires(permissions.may_order, of=visible_vll)
@require_http_methods(["GET", "HEAD", "POST"])
def suspend(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Ask for confirmation (GET), or order the suspension of the line (POST)."""
    if request.method != "POST":
        return render(request, "vll/suspend.html", {"vll": vll})
    with result_message(request, done=_("The line is being suspended.")):
        order_suspend(user=request.user, vll=vll, now=clock.now())
    return redirect("web:vll", vll_id=vll.pk)


@requires(permissions.may_order, of=visible_vll)
@require_POST
def resume(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Order that the suspended line is resumed."""
    with result_message(request, done=_("The line is being resumed.")):
        order_resume(user=request.user, vll=vll, now=clock.now())
    return redirect("web:vll", vll_id=vll.pk)


@requires(permissions.may_order, of=visible_vll)
@require_POST
def restore(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Undo the removal of the line during its cooling-off."""
    with result_message(request, done=_("The removal is undone.")):
        order_restore(user=request.user, vll=vll, now=clock.now())
    return redirect("web:vll", vll_id=vll.pk)


@requires(permissions.may_order, of=visible_vll)
@require_POST
def cancel(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Cancel the line's open order."""
    order = queries.open_order(vll)
    if order is None:
        messages.error(request, _("There is no order left to cancel: it has just finished."))
        return redirect("web:vll", vll_id=vll.pk)
    with result_message(request, done=_("The order is being cancelled.")):
        order_cancel(user=request.user, order=order, now=clock.now())
    return redirect("web:vll", vll_id=vll.pk)


@requires(permissions.may_order, of=visible_vll)
@require_POST
def retry(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Place the line's last, failed order again.

    If the order was for a new line, the retry creates another VLL. The user is redirected to the page of that
    VLL.
    """
    order = vll.orders.order_by("-ordered_at", "-id")[0]
    shown = vll.pk
    with result_message(request, done=_("The order is placed again.")):
        shown = order_retry(user=request.user, order=order, now=clock.now()).vll_id
    return redirect("web:vll", vll_id=shown)


@requires(permissions.may_order, of=visible_vll)
@require_http_methods(["GET", "HEAD", "POST"])
def bandwidth(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Show the form with the line's bandwidth (GET), or order another bandwidth (POST).

    If the order is refused, the response has status 422 and shows the error next to the field.
    """
    data = request.POST if request.method == "POST" else None
    form = OtherBandwidthForm(data, cir_bps=vll.cir_bps, customer=vll.customer)
    if form.is_valid():
        changes = {"cir_bps": form.cleaned_data["cir_bps"]}
        try:
            order_modify(user=request.user, vll=vll, changes=changes, now=clock.now())
        except DomainError as error:
            form.add_error("cir", error.sentence)
        else:
            messages.success(request, _("The new bandwidth is ordered."))
            return redirect("web:vll", vll_id=vll.pk)
    status = UNPROCESSABLE if form.is_bound else 200
    return render(request, "vll/bandwidth.html", {"vll": vll, "bandwidth": form}, status=status)
