"""The orders for an existing line: the pages to change and to remove it, and the buttons on its page."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts import permissions
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import DomainError
from portal.core.network.vlan_tags import Tagging
from portal.core.quantities import whole_number
from portal.core.reader_texts import lasting_text, moment_text
from portal.vll import queries
from portal.vll.errors import NothingToChange
from portal.vll.line_revision import content_of
from portal.vll.line_spec import ANY, END, LINE, EndSpec
from portal.vll.models import Vll
from portal.vll.operations.line_removal import agreed_cooling_off, order_delete, order_restore
from portal.vll.operations.modify_line import order_modify, order_resume, order_suspend, vll_describe
from portal.vll.operations.order_endings import order_cancel
from portal.vll.operations.retry_order import order_retry
from portal.vll.quote import quote_change
from portal.vll.states import IN_SERVICE
from portal.web.fields.base import OUTDATED, digest, it_is_now
from portal.web.lines.bandwidth_form import OtherBandwidthForm, approval_help
from portal.web.orders.order_form import OrderForm, end_initial, line_initial, unjudged
from portal.web.orders.order_preview import diff_rows_between, preview_context
from portal.web.page.base import SignedInRequest, requires, result_message, visible_vll


class ChangeForm(OrderForm):
    """The form to change one line: the order form, with the values that were ordered for the line.

    ``revision``: the revision of the line when the form was opened. If the line has another revision when the
    form is submitted, the change is refused. ``described``: a digest of the description when the form was
    opened. The digest is needed because a new description does not increase the revision. ``written``: the
    values that the user had entered before searching for a port.
    """

    def __init__(
        self, *, user: User, vll: Vll, data: QueryDict | None = None, written: QueryDict | None = None
    ) -> None:
        ends = {f"{end.side}_end": end_initial(end) for end in vll.ends.all()}
        initial = {**ends, "line": line_initial(vll)} if written is None else unjudged(written)
        super().__init__(user=user, data=data, initial=initial, owner=vll.customer_id)
        self._now = {end.side: end for end in vll.ends.all()}
        if not user.is_noc:
            self.line.fields["cir"].help_text = approval_help([vll.customer])
        source = (data if written is None else written) or QueryDict()
        self.described = source.get("described") or digest(vll.description)
        revision = whole_number(source.get("revision", ""), most=10**9 - 1)
        self.revision = vll.revision if revision is None else revision

    def is_outdated(self, vll: Vll) -> bool:
        """Return whether the form changes a description that somebody else has changed since it was opened.

        The form must be valid.
        """
        renames = self._description() not in (None, vll.description)
        return renames and self.described != digest(vll.description)

    def refuse_as_outdated(self, vll: Vll) -> None:
        """Add an error with the current description of the line to the form.

        If the user submits the form again, the description is overwritten.
        """
        self.line.add_error(None, OUTDATED)
        self.line.add_error("description", it_is_now(vll.description))
        self.described = digest(vll.description)

    def _description(self) -> str | None:
        """Return the new description. Return None if the user has not changed it, so that the current
        description is kept.
        """
        written: str = self.line.cleaned_data["description"]
        return None if digest(written) == self.described else written

    def changes(self) -> dict[str, Any]:
        """Return all values of the form, changed or not. The operation finds the differences."""
        spec, description = self.spec(), self._description()
        line = {each.name: getattr(spec, each.name) for each in LINE if each.name != "description"}
        ends = {f"{side}_end": self._members(side, end) for side, end in spec.ends.items()}
        return line | ends | ({} if description is None else {"description": description})

    def _members(self, side: str, end: EndSpec) -> dict[str, Any]:
        """Return the values of an end in the form.

        If the portal chose the current VLAN, and the user changes neither port nor VLAN, the VLAN is
        requested as "any". The VLAN then remains the portal's choice.
        """
        members = {each.name: getattr(end, each.name) for each in END}
        now = self._now[side]
        if now.requested_outer_vlan is None and (end.port, end.outer_vlan) == (now.port_id, now.outer_vlan):
            members["outer_vlan"] = None if end.tagging == Tagging.UNTAGGED else ANY
        return members


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
    if request.method != "POST" or "find" in request.POST or "any" in request.POST:
        form = ChangeForm(user=request.user, vll=vll, written=request.POST or None)
        return render(request, "vll/change.html", {"vll": vll, "form": form})
    form = ChangeForm(user=request.user, vll=vll, data=request.POST)
    if "check" in request.POST:
        context = {"vll": vll, "form": form} | _feasibility(form, request, vll)
        return render(request, "vll/change.html", context)
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

    ``change``: the effect of the change. ``diff_rows``: the old and the new value of each changed field. If
    the form is not valid, the context has the errors that prevent a preview.
    """
    if not form.is_valid():
        return dict(form.obstacles())
    vlans = {end.side: end.outer_vlan for end in vll.ends.all()}
    changes = form.changes()
    found = quote_change(vll, changes, user=request.user, now=clock.now(), expected_revision=form.revision)
    before = content_of(vll)
    return preview_context(found, form) | {
        "change": {"changes_nothing": found.changes_nothing, "transport": before.allocated_transport},
        "diff_rows": diff_rows_between(before.spec, found.spec, vlans=vlans),
    }


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
