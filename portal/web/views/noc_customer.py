"""The page about a customer for the NOC: lines, ports, people, orders, traffic and next steps."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from portal.accounts import permissions
from portal.accounts.invitations import open_invitations
from portal.accounts.models import Customer
from portal.core import clock
from portal.diagnosis.health import HealthState, with_health
from portal.diagnosis.health_queries import health_counts, with_health_state
from portal.diagnosis.models import TroubleReport
from portal.inventory.models import Port
from portal.inventory.operations import customer_return
from portal.inventory.port_link_state import with_link_speed
from portal.telemetry.customer_traffic import customer_traffic
from portal.telemetry.time_spans import last_month
from portal.vll import queries
from portal.vll.states import OrderState
from portal.web.customer_onboarding import add_port_address, steps_of
from portal.web.inventory_kinds import KINDS
from portal.web.page_guard import SignedInRequest, proves_identity, requires
from portal.web.pagination import newest_first

# The maximum number of rows in each list. A link leads to all rows.
SHOWN = 8


@dataclass(frozen=True, slots=True)
class First:
    """The first rows of a list. ``more``: whether there are further rows."""

    rows: list[Any]
    more: bool


@requires(permissions.may_run_the_network)
@require_safe
def page(request: SignedInRequest, customer_id: int) -> HttpResponse:
    """Show a customer. The customer may be retired."""
    customer, now = get_object_or_404(Customer, pk=customer_id), clock.now()
    lines = queries.vlls(request.user).filter(customer=customer).prefetch_related(None)
    counts = health_counts(lines)
    orders = queries.orders(request.user).filter(customer=customer)
    ports = with_link_speed(Port.objects.filter(customer=customer).select_related("router__site"))
    people = customer.memberships.select_related("user").order_by("role", "user__username")
    invitations = open_invitations(now).filter(customer=customer).order_by("-created_at")
    reports = TroubleReport.objects.filter(customer=customer, closed_at__isnull=True).select_related("vll")
    context = {
        "kinds": KINDS,
        "customer": customer,
        "steps": steps_of(customer, user=request.user, has_lines=bool(counts), now=now),
        "counts": counts,
        "line_count": sum(counts.values()),
        "ports": _first(ports.order_by("router__site__name", "router__name", "interface")),
        "add_port": add_port_address(customer),
        "people": _first(people),
        "invitations": _first(invitations),
        "pending": list(orders.filter(state=OrderState.PENDING_APPROVAL)[:SHOWN]),
        "orders": _first(orders.exclude(state=OrderState.PENDING_APPROVAL)),
        "traffic": customer_traffic(customer, now=now),
        "reports": _first(reports.order_by("reported_at")),
        "may_remove": permissions.may_remove_from_the_network(request.user),
    }
    return render(request, "noc/customer.html", context)


@requires(permissions.may_run_the_network)
@require_safe
def lines(request: SignedInRequest, customer_id: int) -> HttpResponse:
    """Show the customer's lines, newest first. ``?health=`` filters by health."""
    customer = get_object_or_404(Customer, pk=customer_id)
    rows = with_health_state(queries.vlls(request.user).filter(customer=customer))
    requested = request.GET.get("health", "")
    health = HealthState(requested) if requested in HealthState.values else None
    if health is not None:
        rows = rows.filter(health_state=health.value)
    found = newest_first(rows, by="created_at", after=request.GET.get("after", ""))
    context = {
        "kinds": KINDS,
        "customer": customer,
        "states": HealthState.choices,
        "health": health,
        "vlls": with_health(found.rows),
        "page": found,
        "keep": f"health={health.value}" if health else "",
        "last_month": last_month(clock.now()),
    }
    return render(request, "noc/customer_lines.html", context)


@requires(permissions.may_remove_from_the_network)
@proves_identity
@require_POST
def reopen(request: SignedInRequest, customer_id: int) -> HttpResponse:
    """Reopen a retired customer. Its API tokens and invitations remain revoked."""
    customer_return(customer=get_object_or_404(Customer, pk=customer_id), user=request.user, now=clock.now())
    messages.success(request, _("The customer is open again. Its API tokens stay revoked."))
    return redirect("web:noc-customers")


def _first(rows: Any) -> First:
    found = list(rows[: SHOWN + 1])
    return First(found[:SHOWN], len(found) > SHOWN)
