"""The page to drain a router: the lines that still end on it, and the actions."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from portal.accounts import permissions
from portal.core import clock
from portal.core.errors import DomainError
from portal.core.quantities import uuid_of
from portal.inventory.models import Router
from portal.vll import queries
from portal.vll.errors import LinesAffected
from portal.vll.operations.modify_line import order_suspend
from portal.vll.router_operations.drain import (
    DrainStep,
    drain_begin,
    drain_end,
    drain_progress,
    drain_step,
    ends_to_drain,
)
from portal.web.page.base import SignedInRequest, requires
from portal.web.page.list_filters import in_order

CONFLICT = 409


@requires(permissions.may_run_the_network)
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: SignedInRequest, router_id: int) -> HttpResponse:
    """Show the lines that still end on the router (GET), or perform the action ``do`` (POST).

    The actions are ``begin``, ``end``, ``end-both`` (end the drain and the maintenance), and ``suspend`` (the
    line ``vll``). If an action is refused, the response has status 409 and shows the reason.
    """
    rows = Router.objects.filter(retired_at__isnull=True).select_related("site")
    router = get_object_or_404(rows, pk=router_id)
    if request.method != "POST":
        return _page(request, router)
    try:
        done = _do(request, router)
    except DomainError as error:
        asks = isinstance(error, LinesAffected)
        return _page(request, router, refusal=error.sentence, may_accept=asks)
    if done is None:
        return HttpResponse(status=400)
    messages.success(request, done)
    return redirect("web:noc-router-drain", router_id=router.pk)


def _do(request: SignedInRequest, router: Router) -> str | None:
    """Perform the action ``do``, and return the message for the user; None if the action is unknown."""
    accepted = request.POST.get("accept_affected") == "on"
    match request.POST.get("do"):
        case "begin":
            drain_begin(router=router, user=request.user, now=clock.now(), accept_affected=accepted)
            return _("The drain has begun.")
        case "end" | "end-both" as what:
            drain_end(
                router=router,
                user=request.user,
                now=clock.now(),
                accept_affected=accepted,
                with_maintenance=what == "end-both",
            )
            if what == "end":
                return _("The drain is over; the maintenance goes on.")
            text = _("The drain and the maintenance are over: %(router)s takes new lines again.")
            return text % {"router": router}
        case "suspend":
            vll = get_object_or_404(queries.vlls(request.user), pk=uuid_of(request.POST.get("vll", "")))
            order_suspend(user=request.user, vll=vll, now=clock.now())
            return _("The line is being suspended.")
        case _:
            return None


def _page(
    request: SignedInRequest, router: Router, refusal: str = "", may_accept: bool = False
) -> HttpResponse:
    progress = drain_progress(router)
    found = in_order(ends_to_drain(router), by=("port__interface", "pk"), after=request.GET.get("after", ""))
    context = {
        "router": router,
        "progress": progress,
        "stopped_count": progress.steps[DrainStep.STOPPED],
        "ends": [(end, drain_step(end).value) for end in found.rows],
        "page": found,
        "refusal": refusal,
        "may_accept": may_accept,
    }
    return render(request, "noc/routers/drain.html", context, status=CONFLICT if refusal else None)
