"""The page of a customer, with the next steps to set it up. The steps are derived from missing objects."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from portal.accounts import permissions
from portal.accounts.invitations import open_invitations
from portal.accounts.models import Customer, Membership, User
from portal.core import clock
from portal.diagnosis.health import HealthState, health_counts, with_health, with_health_state
from portal.diagnosis.models import TroubleReport
from portal.inventory.interfaces import with_link_speed
from portal.inventory.models import Port
from portal.inventory.operations import customer_return
from portal.telemetry.throughput import customer_traffic
from portal.telemetry.time_spans import last_month
from portal.vll import queries
from portal.vll.states import OrderState
from portal.web.noc.inventory.inventory_kinds import KINDS
from portal.web.orders.port_choice import orderable_ports
from portal.web.page.base import SignedInRequest, proves_identity, requires
from portal.web.page.list_filters import newest_first


@dataclass(frozen=True, slots=True)
class Step:
    """A step. ``why``: the reason for it.

    ``action`` and ``address``: the text and the address of the link. Both are "" if another user has to act.
    """

    why: str
    action: str = ""
    address: str = ""


def steps_of(customer: Customer, *, user: User, has_lines: bool, now: datetime) -> list[Step]:
    """Return the steps in the recommended order; an empty list for a retired customer."""
    if customer.retired_at is not None:
        return []
    return [*_of_people(customer, user, now), *_of_service(customer, user, has_lines)]


def add_port_address(customer: Customer) -> str:
    """Return the address of the form to add a port of this customer.

    After saving, the form returns to the customer's page.
    """
    return f"{reverse('web:noc-ports-add')}?{urlencode({'customer': customer.name})}"


def _of_service(customer: Customer, user: User, has_lines: bool) -> Iterator[Step]:
    ports = Port.objects.filter(customer=customer)
    if not ports.exists():
        yield Step(
            _("It has no port, so nothing can be ordered."), _("Add a port"), add_port_address(customer)
        )
    elif not has_lines:
        first = orderable_ports(user).filter(customer=customer).order_by("pk").first()
        if first is None:
            yield Step(_("Its ports are on routers without an agent, where no line can end."))
        else:
            address = f"{reverse('web:order')}?{urlencode({'port': first.pk})}"
            yield Step(_("It has no line yet."), _("Order a line for them"), address)


def _of_people(customer: Customer, user: User, now: datetime) -> Iterator[Step]:
    people = Membership.objects.filter(customer=customer, user__is_active=True)
    admins = people.filter(role=Membership.Role.ADMIN)
    invited = open_invitations(now).filter(customer=customer, role=Membership.Role.ADMIN)
    if not admins.exists() and not invited.exists():
        why = _("It has no administrator yet, who can invite the others.")
    elif people.exists() and not people.exclude(user__email="").exists():
        why = _("None of its people has an e-mail address, so no mail reaches them.")
    else:
        return
    if permissions.may_manage_team(user, customer):
        role = urlencode({"role": Membership.Role.ADMIN.value})
        address = f"{reverse('web:team', args=[customer.pk])}?{role}#invite"
        yield Step(why, _("Invite an administrator"), address)
    else:
        yield Step(f"{why} {_('A NOC admin can invite somebody.')}")


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
    return render(request, "noc/inventory/customer.html", context)


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
    return render(request, "noc/inventory/customer_lines.html", context)


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
