"""The first page after sign-in: problems of lines, traffic, and recent orders."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.translation import gettext_lazy as _

from portal.accounts import permissions
from portal.accounts.models import User
from portal.accounts.permissions import customers_named
from portal.core import clock
from portal.diagnosis.health import HealthState, in_service_counts, troubled_paths, with_health
from portal.inventory.models import Port
from portal.telemetry.throughput import recent_of
from portal.telemetry.time_spans import last_month
from portal.vll import queries
from portal.vll.models import Vll
from portal.vll.states import TERMINAL_LIFECYCLES, TERMINAL_ORDER_STATES, OperStatus, OrderState
from portal.web.page.base import SignedInRequest, requires
from portal.web.page.list_filters import newest_first
from portal.web.page.sparklines import sparkline_of

SHOWN = 5


class Trouble(models.TextChoices):
    """The kinds of problems, worst first.

    With ``?trouble=``, the overview lists the lines with one kind of problem.
    """

    DOWN = "down", _("Down")
    FAILED = "failed", _("Order failed in the last day")
    DRIFT = "drift", _("Configuration drift")


_TONES = {Trouble.DOWN: "danger", Trouble.FAILED: "danger", Trouble.DRIFT: "warning"}


def attention(user: User, *, down: bool, out_of_sync: bool, now: datetime) -> list[dict[str, Any]]:
    """Return the kinds of problems that exist, worst first, each with its first lines (``vlls``).

    ``down``: whether there can be lines that are down. ``out_of_sync``: whether there can be lines that are
    not in sync. If ``down`` or ``out_of_sync`` is False, the query for this kind is left out.
    """
    lines = queries.in_service(queries.vlls(user)).prefetch_related(None)
    failed = queries.recently_failed(queries.orders(user), now=now)
    found = [
        _worry(Trouble.DOWN, lines.filter(oper_status=OperStatus.DOWN)) if down else None,
        _worry(Trouble.FAILED, failed, lambda order: order.vll),
        _worry(Trouble.DRIFT, queries.drifted(lines)) if out_of_sync else None,
    ]
    return [worry for worry in found if worry is not None and worry["vlls"]]


def lines_with(trouble: Trouble, rows: QuerySet[Vll], user: User, *, now: datetime) -> QuerySet[Vll]:
    """Return the lines in ``rows`` that have this kind of problem, by the rules of ``attention``."""
    if trouble == Trouble.FAILED:
        failed = queries.recently_failed(queries.orders(user), now=now)
        return rows.filter(pk__in=failed.order_by().values("vll"))
    rows = queries.in_service(rows)
    return queries.drifted(rows) if trouble == Trouble.DRIFT else rows.filter(oper_status=OperStatus.DOWN)


def _worry(
    trouble: Trouble, rows: QuerySet[Any], line_of: Callable[[Any], Vll] = lambda row: row
) -> dict[str, Any]:
    first = list(rows[: SHOWN + 1])
    more = rows.count() - SHOWN if len(first) > SHOWN else 0
    vlls = [line_of(row) for row in first[:SHOWN]]
    return {"trouble": trouble, "tone": _TONES[trouble], "vlls": vlls, "more": more}


OPEN_ORDERS_SHOWN = 10
# The health states that a line in service can have while it is not in sync. In the table of
# portal.diagnosis.health, "down" and "unknown" take precedence over "degraded".
_MAY_BE_OUT_OF_SYNC = {HealthState.DOWN, HealthState.UNKNOWN, HealthState.DEGRADED}


@requires(permissions.may_sign_in)
def overview(request: SignedInRequest) -> HttpResponse:
    """Show the lines of the user's customers.

    ``?show=all`` adds removed lines. ``?trouble=`` filters by a kind of problem. ``?after=`` is the cursor
    for further pages.
    """
    mine = customers_named(request.user)
    everything = queries.vlls(request.user).filter(mine)
    current = everything.exclude(lifecycle__in=TERMINAL_LIFECYCLES)
    open_orders = queries.orders(request.user).filter(mine).exclude(state__in=TERMINAL_ORDER_STATES)
    show_all = request.GET.get("show") == "all"
    now = clock.now()
    # Read the orders before the lines. If an order has ended, its line is then read with the result of the
    # order.
    orders = list(open_orders[:OPEN_ORDERS_SHOWN])
    listed = everything if show_all else current
    trouble = next((each for each in Trouble if each.value == request.GET.get("trouble")), None)
    if trouble is not None:
        listed = lines_with(trouble, everything, request.user, now=now)
    page = newest_first(listed, by="created_at", after=request.GET.get("after", ""))
    troubled = list(troubled_paths())
    with_health(page.rows, troubled=troubled)
    may_order = permissions.may_order_for_anyone(request.user)
    # If there are lines, there are also ports. So the query is needed only without lines.
    lacks_ports = may_order and not page.rows and not Port.objects.visible_to(request.user).exists()
    carrying = [vll.pk for vll in page.rows if vll.lifecycle not in TERMINAL_LIFECYCLES]
    recent = recent_of(carrying, now=now)
    counts = in_service_counts(everything, troubled=troubled)
    context = {
        "page": page,
        "traffic": {pk: sparkline_of(each) for pk, each in recent.items()},
        "attention": attention(
            request.user,
            down=counts.get(HealthState.DOWN, 0) > 0,
            out_of_sync=bool(counts.keys() & _MAY_BE_OUT_OF_SYNC),
            now=now,
        ),
        "show_all": show_all,
        "trouble": trouble,
        "keep": f"trouble={trouble.value}" if trouble else "show=all" if show_all else "",
        "may_order": may_order,
        "lacks_ports": lacks_ports,
        "active": sum(counts.values()),
        "up": counts.get(HealthState.UP, 0),
        "open_orders": orders,
        "open_order_count": open_orders.count(),
        "last_month": last_month(now),
    }
    context["live"] = render_to_string("overview/_live.html", context, request)
    # Orders that wait for the NOC's approval do not proceed automatically.
    is_moving = any(order.state != OrderState.PENDING_APPROVAL for order in orders)
    context["every"] = "2s" if is_moving else "30s"
    template = "overview/_overview.html" if request.htmx else "overview/overview.html"
    return render(request, template, context)
