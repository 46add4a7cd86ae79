"""The page of a line."""

from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django_htmx.http import trigger_client_event

from portal.accounts import permissions
from portal.audit.history import vll_history
from portal.core import clock
from portal.core.db.replica import from_replica
from portal.core.network.encapsulations import Transport
from portal.diagnosis.health import with_applied_rate, with_order
from portal.telemetry.line_losses import end_drops, policed
from portal.telemetry.monthly_figures import months_of
from portal.vll import queries
from portal.vll.line_spec import LINE
from portal.vll.models import Vll
from portal.vll.path_status import path_of, path_status
from portal.vll.states import TERMINAL_LIFECYCLES, Lifecycle, OperStatus
from portal.web.lines.bandwidth_form import OtherBandwidthForm
from portal.web.lines.line_progress import progress_of
from portal.web.lines.paths import LinePath, line_path
from portal.web.page.base import SignedInRequest, requires, visible_vll
from portal.web.page.live import HTTP_NO_CHANGE

_RECENT = timedelta(days=1)
_TESTS_SHOWN = 10
_ORDERS_SHOWN = 20
_NOT_THERE = TERMINAL_LIFECYCLES | {Lifecycle.PENDING_ACTIVE}


@requires(permissions.may_see, of=visible_vll)
def page(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Show a VLL."""
    now = clock.now()
    context = {
        "vll": vll,
        "may_order": permissions.may_order(request.user, vll.customer),
        "bandwidth": OtherBandwidthForm(None, cir_bps=vll.cir_bps, customer=vll.customer),
        "diagnosable": vll.lifecycle not in TERMINAL_LIFECYCLES,
        "profile": vll.profile,
        "flags": [(each, getattr(vll, each.column)) for each in LINE if each.is_flag],
        "orders": vll.orders.order_by("-ordered_at", "-id")[:_ORDERS_SHOWN],
        "history": vll_history(vll) if request.user.is_noc else [],
        "tests": vll.activation_tests.order_by("-created_at", "-id")[:_TESTS_SHOWN],
        "path": _path(vll, now),
        "policed": policed(vll=vll, since=now - _RECENT, until=now, now=now),
        "drops": end_drops(vll=vll, since=now - _RECENT, until=now, now=now),
        **_live_part(request, vll),
    }
    return render(request, "vll/vll.html", context)


@requires(permissions.may_see, of=visible_vll)
def status(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Return the live part of a VLL's page.

    A page of a settled line polls once a second with ``?unless=``, which is the result of ``_turn`` for the
    shown content. If that result is still current, the status is 204 without further queries. A request with
    the header ``X-Whole`` skips this check, because the page already knows that something has changed
    (static/js/live.js).
    """
    if "X-Whole" not in request.headers and request.GET.get("unless") == _turn(vll):
        return HttpResponse(status=HTTP_NO_CHANGE)
    answer = render(request, "vll/_status.html", {"vll": vll, "announce": True, **_live_part(request, vll)})
    return trigger_client_event(answer, "longline:line-changed")


def _path(vll: Vll, now: datetime) -> LinePath | None:
    """Return the path of a line in the current underlay; None if the line has ended."""
    if vll.lifecycle in TERMINAL_LIFECYCLES:
        return None
    a, z = (end.port.router for end in vll.ends.all())
    return line_path(
        a=a,
        z=z,
        transport=Transport(vll.transport),
        gre_key=vll.gre_key is not None,
        frame=vll.frame,
        now=now,
    )


def _live_part(request: SignedInRequest, vll: Vll) -> dict[str, object]:
    """Return the context with the rendered live part."""
    progress = progress_of(vll, now=clock.now())
    with_applied_rate(vll, progress.order)
    if progress.order is not None:
        with_order(vll, progress.order)
    context = {
        "vll": vll,
        "progress": progress,
        "may_order": permissions.may_order(request.user, vll.customer),
        "may_let_go": request.user.is_noc_admin
        and bool({"suspend", "resume"} & progress.actions)
        and queries.was_adopted(vll),
        "path_watch": path_status(vll),
        # Rates are shown only while the line forwards, and only if they were measured after the last change
        # of the line.
        "carries": vll.lifecycle == Lifecycle.ACTIVE and vll.oper_status != OperStatus.DOWN,
        "unchanged_since": queries.unchanged_since(vll, progress.order),
        # A line that is not set up, or has ended, has no results of test frames on its path.
        "tunnel_path": None if vll.lifecycle in _NOT_THERE else path_of(vll),
    }
    turn = _turn(vll) if any(end.path_state for end in vll.ends.all()) else ""
    settled_every = "1s" if turn else "30s"
    unless = f"?{urlencode({'unless': turn})}" if progress.settled and turn else ""
    return {
        "progress": progress,
        "tunnel_path": context["tunnel_path"],
        "live": render_to_string("vll/_live.html", context, request),
        "live_topic": f"line:{vll.pk}",
        "poll_every": settled_every if progress.settled else progress.poll_every,
        "poll_at": reverse("web:vll-status", args=[vll.pk]) + unless,
    }


def _turn(vll: Vll) -> str:
    """Return a text that changes when the line's oper status or the state of its path changes."""
    paths = (f"{end.path_state}{end.path_since_ms or ''}" for end in vll.ends.all())
    return "-".join([vll.oper_status, *paths])


@requires(permissions.may_see, of=visible_vll)
def months(request: SignedInRequest, vll: Vll) -> HttpResponse:
    """Show the monthly figures of a line. A request of htmx gets only the tables, for the line's page."""
    template = "vll/_months.html" if request.htmx else "vll/months.html"
    months = from_replica(request, lambda: months_of(vll=vll, now=clock.now()))
    return render(request, template, {"vll": vll, "months": months})
