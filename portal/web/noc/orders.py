"""Orders that wait for the NOC's approval: what they change, and the decision."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django import forms, template
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts import permissions
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import DomainError
from portal.inventory.interfaces import with_link_speed
from portal.inventory.models import Port
from portal.inventory.queries import Text
from portal.vll import queries
from portal.vll.line_revision import LineRevision, content_of
from portal.vll.models import Order, PlanResult
from portal.vll.operations.order_approval import (
    PlanState,
    order_approve,
    order_reject,
    plan_of,
    plan_request,
    state_of,
)
from portal.vll.operations.order_endings import may_be_ended, order_force_end, order_force_retry
from portal.vll.states import OrderState
from portal.web.fields.base import TablerForm
from portal.web.lines.paths import line_path
from portal.web.orders.order_preview import diff_rows_of
from portal.web.page.base import SignedInRequest, requires, result_message
from portal.web.page.list_filters import newest_first
from portal.web.page.live import HTTP_NO_CHANGE

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


register = template.Library()


@register.filter
def as_json(value: Any) -> str:
    """Return a value of an intent as JSON. Exceptions: a text has no quotes, and null becomes "–"."""
    if value is None:
        return "–"
    return str(value).lower() if isinstance(value, bool) else str(value)


class ApprovalForm(forms.Form):
    """The form to approve an order. ``plan``: the id of the plan that the user saw."""

    plan = forms.UUIDField()


def _reason(*, help_text: "str | _StrPromise", required: "str | _StrPromise") -> forms.CharField:
    return forms.CharField(
        label=_("Reason"),
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=help_text,
        error_messages={"required": required},
    )


class RejectionForm(TablerForm):
    """The form to reject an order, with the reason."""

    reason = _reason(
        help_text=_("The customer can read it"), required=_("Give a reason: the customer can read it.")
    )


class ForceEndForm(TablerForm):
    """The form to end an order without confirmation from the routers, with the reason."""

    reason = _reason(
        help_text=_("Kept with the order; the customer can read it"),
        required=_("Give a reason: it is kept with the order."),
    )


def needs_of(order: Order, *, now: datetime) -> dict[str, Any]:
    """Return the resources that the line needs if the order is approved.

    ``ports``: by side. Their booked bandwidth includes this order. ``path``: None if both ends are on the
    same router.
    """
    content = LineRevision.from_json(order.after) if order.after else content_of(order.vll)
    rows = with_link_speed(Port.objects.select_related("router"))
    found = rows.in_bulk({end.port for end in content.ends.values()})
    ports = {side: found[end.port] for side, end in content.ends.items()}
    path = line_path(
        a=ports["a"].router,
        z=ports["z"].router,
        transport=content.allocated_transport,
        gre_key=content.gre_key is not None,
        frame=content.frame,
        now=now,
    )
    return {"ports": ports, "path": path}


def plan_parts(plan: PlanResult) -> list[dict[str, Any]]:
    """Return the plans of the routers. The plan of the A end is first.

    ``sides``: the ends of the line that the plan changes, such as ``["a"]``. If the plan of one router names
    no end, its end is the end that the plan of the other router does not name. ``replaces``: whether the plan
    replaces an existing value on the router.
    """
    parts = [_part(part) for part in plan.routers]
    silent = [part for part in parts if not part["sides"]]
    if len(silent) == 1:
        silent[0]["sides"] = sorted({"a", "z"}.difference(*(part["sides"] for part in parts)))
    return sorted(parts, key=lambda part: (part["sides"] or ["z"], part["name"]))


def _part(part: dict[str, Any]) -> dict[str, Any]:
    named = [*part["differences"], *part["operations"], *part["ends"]]
    replaced = [each for each in part["differences"] if None not in (each["before"], each["after"])]
    sides = sorted({each["end"] for each in named if each.get("end")})
    return {**part, "sides": sides, "replaces": bool(replaced)}


CONFLICT, UNPROCESSABLE = 409, 422


@requires(permissions.may_run_the_network)
def orders_pending_approval(request: SignedInRequest) -> HttpResponse:
    """Show all orders that wait for approval, newest first."""
    pending = queries.orders(request.user).filter(state=OrderState.PENDING_APPROVAL)
    page = newest_first(pending, by="ordered_at", after=request.GET.get("after", ""))
    return render(request, "noc/orders/orders.html", {"page": page})


@requires(permissions.may_run_the_network)
@require_http_methods(["GET", "HEAD"])
def page(request: SignedInRequest, order_id: UUID) -> HttpResponse:
    """Show an order, the reason why it needs approval, and the plans of its routers."""
    return _page(request, _order(request.user, order_id))


@requires(permissions.may_run_the_network)
@require_http_methods(["GET", "HEAD", "POST"])
def plan(request: SignedInRequest, order_id: UUID) -> HttpResponse:
    """Return the part of the page with the plans (GET), or request new plans from the routers (POST).

    While the plans are not complete, a GET has status 204.
    """
    order = _order(request.user, order_id)
    if request.method == "POST":
        with result_message(request):
            plan_request(user=request.user, order=order, now=clock.now())
        if not request.htmx:
            return redirect("web:noc-order", order_id=order.pk)
    context = _plan_part(order)
    if request.method != "POST" and context["plan_state"] == PlanState.UNDER_WAY:
        return HttpResponse(status=HTTP_NO_CHANGE)
    return render(request, "noc/orders/_plan.html", {"order": order, **context})


@requires(permissions.may_run_the_network)
@require_POST
def approve(request: SignedInRequest, order_id: UUID) -> HttpResponse:
    """Approve an order. ``plan``: the id of the plan that the user saw.

    If that plan is no longer current, the approval is refused, and the page shows the current plan.
    """
    order, form = _order(request.user, order_id), ApprovalForm(request.POST)
    if not form.is_valid():
        return _page(request, order, refusal=_("Read a plan before you approve."), status=UNPROCESSABLE)
    operation = partial(order_approve, **form.cleaned_data)
    done = _("The order is approved; the routers are being configured.")
    return _performed(request, order, operation, done, redirect("web:vll", vll_id=order.vll_id))


@requires(permissions.may_run_the_network)
@require_POST
def reject(request: SignedInRequest, order_id: UUID) -> HttpResponse:
    """Reject an order. The customer can read ``reason``."""
    order, form = _order(request.user, order_id), RejectionForm(request.POST)
    if not form.is_valid():
        return _page(request, order, rejection=form, status=UNPROCESSABLE)
    operation = partial(order_reject, **form.cleaned_data)
    done = _("The order is rejected; its VLANs and bandwidth are free again.")
    return _performed(request, order, operation, done, redirect("web:noc-orders"))


@requires(permissions.may_run_the_network)
@require_POST
def force_retry(request: SignedInRequest, order_id: UUID) -> HttpResponse:
    """Make the portal retry the order on its routers immediately."""
    order, done = _order(request.user, order_id), _("The routers are being queried again.")
    return _performed(request, order, order_force_retry, done, redirect("web:noc-order", order_id=order_id))


@requires(permissions.may_remove_from_the_network)
@require_POST
def force_end(request: SignedInRequest, order_id: UUID) -> HttpResponse:
    """End an order without confirmation from its routers. The customer can read ``reason``."""
    order, form = _order(request.user, order_id), ForceEndForm(request.POST)
    if not form.is_valid():
        return _page(request, order, ending=form, status=UNPROCESSABLE)
    operation = partial(order_force_end, **form.cleaned_data)
    done = _("The order is ended. Its leases stay until all routers have confirmed.")
    return _performed(request, order, operation, done, redirect("web:noc-order", order_id=order_id))


def _performed(
    request: SignedInRequest, order: Order, operation: Callable[..., object], done: Text, then: HttpResponse
) -> HttpResponse:
    """Perform an operation on the order, and return the response ``then``, with the message ``done``.

    If the operation is refused, return the page of the order with the reason.
    """
    try:
        operation(user=request.user, order=order, now=clock.now())
    except DomainError as error:
        return _page(request, order, refusal=error.sentence, status=CONFLICT)
    messages.success(request, str(done))
    return then


def _order(user: User, order_id: UUID) -> Order:
    return get_object_or_404(queries.orders(user), pk=order_id)


def _page(
    request: SignedInRequest,
    order: Order,
    *,
    refusal: Text = "",
    rejection: RejectionForm | None = None,
    ending: ForceEndForm | None = None,
    status: int | None = None,
) -> HttpResponse:
    order.refresh_from_db(fields=["state"])
    pending = order.state == OrderState.PENDING_APPROVAL
    diff_rows = diff_rows_of(order)
    context = {
        "order": order,
        "diff_rows": diff_rows,
        "line_diff_rows": [each for each in diff_rows if not each.side],
        "end_diff_rows": {side: [each for each in diff_rows if each.side == side] for side in "az"},
        "needs": needs_of(order, now=clock.now()) if pending else None,
        "refusal": refusal,
        "rejection": rejection or RejectionForm(),
        "pending": pending,
        "orderer_may_not": pending and not queries.orderers_may_order([order])[order.pk],
        "under_way": not order.is_terminal and not pending,
        "may_end": may_be_ended(order) and permissions.may_remove_from_the_network(request.user),
        "ending": ending or ForceEndForm(),
        **_plan_part(order),
    }
    return render(request, "noc/orders/order.html", context, status=status)


def _plan_part(order: Order) -> dict[str, Any]:
    plan = plan_of(order)
    if plan is None:
        return {"plan": None, "plan_state": None, "parts": []}
    parts = plan_parts(plan)
    return {
        "plan": plan,
        "plan_state": str(state := state_of(plan, now=clock.now())),
        "live_topic": f"line:{order.vll_id}",
        "plan_every": "1s" if state == PlanState.UNDER_WAY else "",
        "parts": parts,
        "silent": [part["name"] for part in parts if part["error"]],
        "refusing": [part["name"] for part in parts if part["ends"]],
    }
